"""Decides which changes need a comment: those in an environment for which the project requires one.

`flagadmin.core.change_checks.comments` calls it before audit events are recorded.

Rules for the number of approvals that a change request needs, by its effect. The first matching rule
applies.

A rule is stored as ``{condition, requiredApprovals}``, with ``percent`` or ``tag`` if its condition takes one. Changes
without a matching rule need ``ProjectEnvironment.required_approvals``.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.record import Event
from flagadmin.core.change_checks.comments import CommentRefused
from flagadmin.core.errors import Problem, choices
from projects.history.diff import DEPENDENCIES, ENVIRONMENT, find_differing_parts
from projects.models import ProjectEnvironment, Strategy

EVERYWHERE = ""
"""Represents the whole project in place of an environment's name."""
_IN_ALL_ENVIRONMENTS = frozenset(
    {E.FEATURE_ARCHIVED, E.FEATURE_DEPENDENCY_ADDED, E.FEATURE_DEPENDENCY_REMOVED, E.FEATURE_PROJECT_CHANGE}
)
# They name an environment in which they change nothing.
_NO_CHANGES = frozenset(
    {
        E.API_TOKEN_CREATED,
        E.API_TOKEN_UPDATED,
        E.API_TOKEN_DELETED,
        E.FEATURES_EXPORTED,
        E.CHANGE_REQUEST_TITLE_UPDATED,
        E.CHANGE_REQUEST_REVIEWERS_UPDATED,
        E.CHANGE_REQUEST_COMMENT_ADDED,
        E.CHANGE_REQUEST_DISCARDED,
    }
)


def check_required_comment(events: Iterable[Event]) -> None:
    """Raises CommentRefused. One query if an event concerns an environment, and one more for segments."""
    touched: dict[str, set[str]] = defaultdict(set)
    for project, environment in _list_touched(events):
        touched[project].add(environment)
    places = [
        f"{name} ({environment})"
        for project, name, environment in _find_requiring(touched)
        if touched[project] & {environment, EVERYWHERE}
    ]
    if places:
        raise CommentRefused.missing(places)


def requires_comment(projects: Collection[str], environments: Collection[str] | None = None) -> bool:
    """Whether a change in one of these environments, or in all, needs a comment in one of the projects."""
    requiring = {environment for _, _, environment in _find_requiring(projects)}
    return bool(requiring if environments is None else requiring.intersection(environments))


def _find_requiring(projects: Collection[str]) -> list[tuple[str, str, str]]:
    """The id and name of the project, and the environment."""
    if not projects:
        return []
    links = ProjectEnvironment.objects.filter(comment_required=True, project__in=list(projects))
    return list(links.order_by("pk").values_list("project_id", "project__name", "environment_id"))


def _list_touched(events: Iterable[Event]) -> Iterator[tuple[str, str]]:
    """The projects and environments whose flags the events concern."""
    segments = set()
    for event in events:
        if event.type in _NO_CHANGES:
            continue
        if event.type == E.SEGMENT_UPDATED:
            segments.add(event.after["id"])
        elif event.project is None:
            continue
        elif event.type == E.FEATURE_REVERTED:
            yield from _list_reverted(event.project, event)
        elif event.type in _IN_ALL_ENVIRONMENTS:
            yield event.project, EVERYWHERE
            if event.type == E.FEATURE_PROJECT_CHANGE:
                yield event.before["project"], EVERYWHERE
        elif event.environment:
            yield event.project, event.environment
    if segments:
        uses = Strategy.objects.filter(segments__in=segments, flag__archived_at=None).order_by()
        yield from uses.values_list("flag__project_id", "environment_id").distinct()


def _list_reverted(project: str, event: Event) -> Iterator[tuple[str, str]]:
    for part in find_differing_parts(event.before, event.after):
        if part.kind == ENVIRONMENT:
            yield project, part.environment
        elif part.kind == DEPENDENCIES:
            yield project, EVERYWHERE


MAX_APPROVALS = 10
MAX_RULES = 10
CHANGES_USERS = "changesUsers"
CHANGES_SAVED_CONTEXT = "changesSavedContext"
BREAKS_EXPECTATION = "breaksExpectation"
TOUCHES_TAG = "touchesTag"
ONLY_TURNS_OFF = "onlyTurnsOff"
CONDITIONS = {
    ONLY_TURNS_OFF: "only turns flags off",
    CHANGES_USERS: "changes more than … % of generated users",
    CHANGES_SAVED_CONTEXT: "changes a saved context",
    BREAKS_EXPECTATION: "breaks an expectation",
    TOUCHES_TAG: "touches a flag tagged …",
}
"""The conditions in words, with … for the rule's ``percent`` or ``tag``."""
TAKES = {CHANGES_USERS: "percent", TOUCHES_TAG: "tag"}

Rule = Mapping[str, Any]


def describe_rule(rule: Rule) -> str:
    """`changes more than 5 % of generated users`."""
    value = rule.get(TAKES.get(rule["condition"], ""))
    text = f"{value:g}" if isinstance(value, int | float) else str(value)
    return CONDITIONS[rule["condition"]].replace("…", text)


def rules_problems(rules: Sequence[Rule], path: str) -> Iterator[Problem]:
    if len(rules) > MAX_RULES:
        yield Problem(path, f"must be at most {MAX_RULES}, not {len(rules)}")
    for index, rule in enumerate(rules):
        yield from _rule_problems(rule, f"{path}[{index}]")


def _rule_problems(rule: Rule, path: str) -> Iterator[Problem]:
    condition, approvals = rule["condition"], rule["requiredApprovals"]
    if condition not in CONDITIONS:
        yield Problem(f"{path}.condition", f"must be one of {choices(CONDITIONS)}, not {condition}")
    if not 0 <= approvals <= MAX_APPROVALS:
        yield Problem(f"{path}.requiredApprovals", f"must be 0 to {MAX_APPROVALS}, not {approvals}")
    if condition == CHANGES_USERS and not 0 <= (rule.get("percent") or 0) < 100:
        yield Problem(f"{path}.percent", f"must be from 0 to below 100, not {rule['percent']:g}")
    if condition == CHANGES_USERS and rule.get("percent") is None:
        yield Problem(f"{path}.percent", "is missing: more than how many percent of the users")
    if condition == TOUCHES_TAG and not all((rule.get("tag") or "").partition(":")):
        yield Problem(f"{path}.tag", "must be a tag as type:value")


def make_rule_document(rule: Rule) -> dict[str, Any]:
    """The stored form, without members that its condition does not take."""
    members = ("condition", "requiredApprovals", TAKES.get(rule["condition"], ""))
    return {name: rule[name] for name in members if name in rule}
