"""Converts an import plan to JSON documents: for the preview page, the command and stored runs, and for
``validate``."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from typing import Any

import orjson

from flagadmin.core.db.statements import copy_rows
from flagadmin.core.document import Document
from flagadmin.core.errors import Problem
from groups.access import Caller, Permission
from importer.models import FlagReport, ImportRun
from importer.plan.import_plan import Action, FlagPlan, Plan
from importer.plan.target import Issue, IssueKind, make_no_access
from importer.promotion import Promotion
from projects.fingerprint import list_evaluated
from projects.history.diff import diff, summary
from projects.models import ProjectEnvironment

UNPROPOSABLE = (
    "A change request cannot create flags that are on at once. Import them turned off, and propose to turn them "
    "on:"
)
LEFT_OUT = (
    "A change request changes what the environment answers, and leaves out the rest of these flags. Import them again "
    "once it is applied:"
)
ALSO_LEFT_OUT = "A change request leaves these out. Import the file again once it is applied:"
MAX_NAMED = 1_000
_PROPOSED = frozenset({"enabled", "strategies", "variants", "parents", "archived", "impressionData"})


def list_unproposable(plan: Plan, caller: Caller) -> list[str]:
    """The new flags that would be on at once in an environment that requires change requests."""
    here = {"project": plan.project, "environment": plan.environment}
    if not ProjectEnvironment.objects.filter(**here, required_approvals__isnull=False).exists():
        return []
    if caller.can(Permission.SKIP_CHANGE_REQUEST, **here):
        return []
    return _list_on_at_once(plan)


def _list_on_at_once(plan: Plan) -> list[str]:
    return [flag.name for flag in plan.with_action(Action.CREATE) if flag.after and flag.after["enabled"]]


def foresee_request(plan: Plan) -> dict[str, Any]:
    """Predicts the request for the plan without trying it: whether it proposes anything, its needs and omissions.

    Changes of a flag that stays off do not affect results.
    """
    on_at_once = dict.fromkeys(_list_on_at_once(plan))
    changed = [flag for flag in plan.with_action(Action.CHANGE) if _is_on(flag.before) or _is_on(flag.after)]
    left_out = list_left_out(plan, {flag.name for flag in changed})
    needed_first = _map_needed_first(plan, {flag.name for flag in changed})
    is_proposed = on_at_once or any(map(_is_proposed, changed))
    return {
        "isProposed": bool(is_proposed),
        "unproposable": list(on_at_once)[:MAX_NAMED],
        "leftOut": [name for name in left_out if name not in on_at_once][:MAX_NAMED],
        "alsoLeftOut": [name for name in list_also_left_out(plan) if name not in needed_first][:MAX_NAMED],
        "neededFirst": list(needed_first)[:MAX_NAMED],
    }


def list_left_out(plan: Plan, proposed: Collection[str]) -> list[str]:
    """The flags for which a request with changes of those ``proposed`` omits something: a tag, or a new flag."""
    return [
        flag.name
        for flag in plan.with_action(Action.CREATE, Action.CHANGE)
        if flag.name not in proposed or flag.differs(*{*(flag.after or ()), "payloadSchema"} - _PROPOSED)
    ]


def list_also_left_out(plan: Plan) -> list[str]:
    """The parts of the plan besides flags that a request omits: ``context field tier``."""
    if plan.references is None:
        return []
    kinds = (
        ("context field", plan.references.new_fields),
        ("tag type", plan.references.new_tag_types),
        ("segment", plan.references.new_segments),
    )
    created = [f"{kind} {new['name']}" for kind, new_rows in kinds for new in new_rows]
    names = plan.saved_contexts_with(Action.CREATE) + plan.saved_contexts_with(Action.CHANGE)
    return created + [f"saved context {name}" for name in names]


def find_needed_first(plan: Plan, proposed: Collection[str]) -> Iterator[Problem]:
    """The new segments and parents that must exist before the changes of the flags ``proposed``."""
    for needed, name in _map_needed_first(plan, proposed).items():
        message = f"{name} needs {needed}, which a change request cannot create. Create it first"
        yield Problem(plan.flags[name].path, message)


def _map_needed_first(plan: Plan, proposed: Collection[str]) -> dict[str, str]:
    """Maps each needed object to the first flag that needs it: ``{"segment vip": "cart"}``."""
    new_segments = {new["id"]: new["name"] for new in plan.references.new_segments} if plan.references else {}
    new_flags = {flag.name for flag in plan.with_action(Action.CREATE)}
    needed: dict[str, str] = {}
    for flag in plan.with_action(Action.CHANGE):
        after = flag.after if flag.name in proposed else None
        if after is None:
            continue
        used = {segment for strategy in after["strategies"] for segment in strategy["segments"]}
        for segment in new_segments.keys() & used:
            needed.setdefault(f"segment {new_segments[segment]}", flag.name)
        for parent in new_flags & {parent["feature"] for parent in after["parents"]}:
            needed.setdefault(f"flag {parent}", flag.name)
    return needed


def _is_on(state: Document | None) -> bool:
    return bool(state and state["enabled"])


def _is_proposed(flag: FlagPlan) -> bool:
    if flag.before is None or flag.after is None or flag.differs(*_PROPOSED - {"strategies"}):
        return True
    before, after = (list_evaluated(state["strategies"]) for state in (flag.before, flag.after))
    return before != after


MAX_KEPT = 1_000
"""The problems, and the notes, that one preview stores."""


def plan_document(plan: Plan) -> dict[str, Any]:
    """The whole plan: its flags, other objects it creates, its issues."""
    return {
        **_plan_summary(plan),
        "problems": [issue.problem().as_dict() for issue in plan.issues],
        "flags": [report.document() for report in make_flag_reports(plan)],
    }


def _plan_summary(plan: Plan) -> dict[str, Any]:
    """The plan without its flags and issues."""
    references = plan.references
    return {
        "project": plan.project,
        "environment": plan.environment,
        "sources": plan.sources,
        "counts": plan.counts,
        "contextFields": [new["name"] for new in references.new_fields] if references else [],
        "tagTypes": [new["name"] for new in references.new_tag_types] if references else [],
        "segments": [new["name"] for new in references.new_segments] if references else [],
        "savedContexts": {
            action.value: plan.saved_contexts_with(action)
            for action in (Action.CREATE, Action.CHANGE, Action.SAME)
        },
        **make_validation_report(plan),
        "fingerprint": plan.fingerprint,
    }


def make_promotion_document(promotion: Promotion, plan: Plan) -> dict[str, Any]:
    """The effects of a promotion in the API's format. The document changes whenever the plan does."""
    return {
        "project": plan.project,
        "from": promotion.source,
        "to": plan.environment,
        "counts": plan.counts,
        "features": [report.document() for report in make_flag_reports(plan)],
        **make_validation_report(plan),
        "fingerprint": plan.fingerprint,
    }


def preview_document(plan: Plan) -> dict[str, Any]:
    """The data of the preview page without the flags.

    ``general`` is the number of problems that excluding flags cannot solve, ``request`` describes the change request
    if one is needed.
    """
    problems = [issue.problem().as_dict() for issue in plan.issues[:MAX_KEPT]]
    return {
        **_plan_summary(plan),
        "problems": problems,
        "problemCount": len(plan.issues),
        "general": sum(plan.flags.keys().isdisjoint({f.flag, *f.users}) for f in plan.issues),
        "notes": plan.notes[:MAX_KEPT],
        "noteCount": len(plan.notes),
        "defaulted": plan.defaulted[:MAX_KEPT],
        "request": foresee_request(plan),
        "refusal": make_no_access(plan.missing_permissions, plan.project).message
        if plan.missing_permissions
        else "",
    }


# Flag by flag ----------------------------------------------------------------------------------------------


def make_flag_reports(plan: Plan) -> Iterator[FlagReport]:
    """Reports for each flag with all changes, in the order of the file."""
    segments = plan.references.known.segments if plan.references else {}
    for flag in plan.flags.values():
        report = make_brief_report(flag, plan)
        if flag.action is Action.CREATE and flag.after is not None:
            report.summary = summary(flag.after, segments)
        if flag.action is Action.CHANGE and flag.after is not None and flag.before is not None:
            report.changes = [asdict(change) for change in diff(flag.before, flag.after, segments)]
        yield report


def make_brief_reports(plan: Plan) -> Iterator[FlagReport]:
    """Reports for each flag without changes, which are in the audit log once an import is done."""
    return (make_brief_report(flag, plan) for flag in plan.flags.values())


def make_brief_report(flag: FlagPlan, plan: Plan) -> FlagReport:
    in_project = flag.stored is not None and flag.stored.project == plan.project
    return FlagReport(name=flag.name, action=flag.action.value, reason=flag.reason, is_here=in_project)


COLUMNS = ("name", "action", "reason", "summary", "changes", "is_here")


def write_reports(run: ImportRun, reports: Iterable[FlagReport]) -> None:
    copy_rows(
        "importer_flagreport",
        ("run_id", *COLUMNS),
        (
            (run.id, r.name, r.action, r.reason, r.summary, orjson.dumps(r.changes).decode(), r.is_here)
            for r in reports
        ),
    )


Entry = dict[str, Any]
"""``{message, affectedItems}``"""

MAX_ITEMS = 5_000
"""The items listed in one entry."""


def make_validation_report(plan: Plan) -> dict[str, list[Entry]]:
    """The response. Errors and permissions are empty if and only if the plan can be applied (`importer.runs`)."""
    return {
        "errors": list(_list_errors(plan)),
        "warnings": list(_list_warnings(plan)),
        "permissions": list(_list_permissions(plan)),
    }


def _make_entry(message: str, items: list[str]) -> Entry:
    if len(items) > MAX_ITEMS:
        items = [*items[:MAX_ITEMS], f"and {len(items) - MAX_ITEMS} more"]
    return {"message": message, "affectedItems": items}


# Errors ----------------------------------------------------------------------------------------------------


def _list_errors(plan: Plan) -> Iterator[Entry]:
    by_kind: dict[IssueKind, list[Issue]] = {kind: [] for kind in IssueKind}
    for issue in plan.issues:
        by_kind[issue.kind].append(issue)
    for kind in _ORDER:
        issues = by_kind[kind]
        if not issues:
            continue
        if kind is IssueKind.FLAG_LIMIT:
            yield from (_make_entry(issue.message, []) for issue in issues)
        else:
            yield _make_entry(_make_message(kind, plan), _list_items(kind, issues))
    yield from _list_target_errors(plan, by_kind[IssueKind.PROJECT] + by_kind[IssueKind.VALUE])


def _list_target_errors(plan: Plan, issues: list[Issue]) -> Iterator[Entry]:
    """Reports an invalid target in one message, and invalid values with their paths."""
    if plan.target is None:
        yield from (_make_entry(issue.message, []) for issue in issues)
    elif issues:
        items = [str(issue.problem()) for issue in issues]
        message = (
            "These values cannot be imported:" if plan.parts is None else "These flags cannot be promoted:"
        )
        yield _make_entry(message, items)


_ORDER = (
    IssueKind.STRATEGY_TYPE,
    IssueKind.CONTEXT_FIELD,
    IssueKind.OTHER_PROJECT,
    IssueKind.DUPLICATE,
    IssueKind.PATTERN,
    IssueKind.FLAG_LIMIT,
    IssueKind.SEGMENT,
    IssueKind.DEPENDENCY,
)
_MESSAGES = {
    IssueKind.STRATEGY_TYPE: "We detected the following custom strategy that needs to be created first:",
    IssueKind.CONTEXT_FIELD: "We detected the following context fields that do not have matching legal values with the "
    "imported ones:",
    IssueKind.DUPLICATE: "We detected the following features are duplicate in your import data:",
    IssueKind.SEGMENT: "We detected the following segments that need to be created first:",
    IssueKind.DEPENDENCY: "We detected the following dependencies that need to be created first:",
}


def _make_message(kind: IssueKind, plan: Plan) -> str:
    if kind is IssueKind.OTHER_PROJECT:
        return (
            "You cannot import a features that already exist in other projects. You already have the following "
            f"features defined outside of project {plan.project}:"
        )
    if kind is IssueKind.PATTERN:
        return _make_pattern_message(plan)
    return _MESSAGES[kind]


def _make_pattern_message(plan: Plan) -> str:
    assert plan.target is not None
    project = plan.target.project
    parts = [
        "Features imported into this project must match the project's feature naming pattern: "
        f'"{project.naming_pattern}".'
    ]
    if project.naming_example:
        parts.append(f'For example: "{project.naming_example}".')
    if project.naming_description:
        parts.append(f'The pattern is described as follows: "{project.naming_description}"')
    return " ".join([*parts, "The following features do not match the pattern:"])


def _list_items(kind: IssueKind, issues: list[Issue]) -> list[str]:
    """The names to list. Strategy types appear once for each strategy, as in the reference, others once."""
    items = [issue.item or issue.message for issue in issues]
    if kind is IssueKind.STRATEGY_TYPE:
        return items
    return sorted(set(items)) if kind is IssueKind.PATTERN else list(dict.fromkeys(items))


# Warnings and permissions ----------------------------------------------------------------------------------


def _list_warnings(plan: Plan) -> Iterator[Entry]:
    listed = (
        (
            "The following strategy types will be used in import. Please make sure the strategy type parameters are "
            "configured as in source environment:",
            plan.custom_strategy_types,
        ),
        (
            "The following features will not be imported as they are currently archived. To import them, please "
            "unarchive them first:"
            if plan.parts is None
            else "These flags are archived and will not be promoted:",
            [flag.name for flag in plan.with_action(Action.SKIP)],
        ),
        (
            "The following features already exist in this project and will be overwritten:",
            [
                flag.name
                for flag in plan.flags.values()
                if flag.before is not None and flag.feature is not None and plan.parts is None
            ],
        ),
        (
            "The following features are on and have no strategy that is on. They get the default strategy:",
            plan.defaulted,
        ),
    )
    yield from (_make_entry(message, items) for message, items in listed if items)
    if plan.notes:
        yield _make_entry("Please note:", plan.notes)


def _list_permissions(plan: Plan) -> Iterator[Entry]:
    if plan.missing_permissions:
        items = [permission.display for permission in plan.missing_permissions]
        yield _make_entry("We detected you are missing the following permissions:", items)
