"""Decides which changes need a comment: those in an environment for which the project requires one.

`flagadmin.core.change_checks.comments` calls it before audit events are recorded.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.record import Event
from flagadmin.core.change_checks.comments import CommentRefused
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
