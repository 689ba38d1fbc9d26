"""Takes a change back, in one transaction, with the actions that a person would use for it."""

from collections.abc import Iterable, Sequence
from typing import Any

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.errors import Conflict, InvalidOperation, NoAccess
from groups.access import Caller
from projects.access import access_flag_for_update, access_project_for_update
from projects.flags.archive.actions import archive_flags_of_projects, revive_flags
from projects.flags.revert.actions import restore
from projects.flags.tags.actions import apply_tags, check_tags
from projects.history.versions import present_version
from projects.reverts.plan import (
    ChangePlan,
    FlagRevert,
    SubjectRevert,
    find_change,
    plan_change,
    problem_texts,
)
from projects.segments.actions import update_segment
from projects.strategies.strategy_types import deprecate_strategy_type, reactivate_strategy_type


@transactional
def revert_change(event_id: int, *, flag: str = "", caller: Caller) -> ChangePlan:
    """Takes back the change that an event belongs to, or what it changed in one flag. Returns what was planned.

    Raises NotFound, NoAccess, InvalidOperation for a change that cannot be reverted, and Conflict naming all that has
    been changed since or cannot be restored. Then nothing is changed.
    """
    events = find_change(caller, event_id, flag)
    _lock(events, caller)
    plan = plan_change(events, lock=True, caller=caller)
    if plan.refusal:
        raise InvalidOperation(plan.refusal)
    if plan.missing:
        raise NoAccess(" ".join(plan.missing))
    if plan.problems:
        raise Conflict(" ".join([*problem_texts(plan)][:5]), details=plan.problems)
    _archive_and_revive(plan.flags, caller)
    for row in plan.flags:
        _restore(row, caller)
    for subject in plan.subjects:
        if subject.changes_anything:
            _restore_subject(subject, caller)
    return plan


def _lock(events: Iterable[AuditEvent], caller: Caller) -> None:
    """The projects, and then no flag or segment of theirs changes."""
    for project in sorted({event.project for event in events if event.project and event.feature}):
        access_project_for_update(caller, project, None)


def _archive_and_revive(rows: Sequence[FlagRevert], caller: Caller) -> None:
    """Together: parents can be archived with their children."""
    names: dict[str, dict[str, list[str]]] = {"archive": {}, "revive": {}}
    for row in rows:
        if row.archival and row.flag is not None:
            names[row.archival].setdefault(row.flag.project_id, []).append(row.name)
    if names["archive"]:
        archive_flags_of_projects(names["archive"], caller=caller)
    for project, flags in names["revive"].items():
        revive_flags(project, flags, caller=caller)


def _restore(row: FlagRevert, caller: Caller) -> None:
    if row.flag is None or not (row.parts or row.add_tags or row.remove_tags):
        return
    flag = access_flag_for_update(caller, row.flag.project_id, row.name, None)
    if row.parts:
        restore(flag, present_version(flag), row.parts, subject=None, caller=caller)
    if row.add_tags or row.remove_tags:
        check_tags(row.add_tags)
        apply_tags([flag], row.add_tags, row.remove_tags, caller=caller)


def _restore_subject(row: SubjectRevert, caller: Caller) -> None:
    event = row.event
    before: Any = event.before
    if event.type == E.SEGMENT_UPDATED:
        values: dict[str, Any] = {key: before[key] for key in ("name", "description", "constraints")}
        values["project_id"] = before.get("project")
        expected = frozenset([hash_document(row.now)])
        update_segment(before["id"], values, expected=expected, caller=caller)
    elif event.type == E.STRATEGY_DEPRECATED:
        reactivate_strategy_type(row.name, caller=caller)
    else:
        deprecate_strategy_type(row.name, caller=caller)
