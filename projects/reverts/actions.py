"""Reverts a flag to one of its versions, an environment to a moment, or one change. Each is one transaction."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.record import AuditEvent, Event, record_all
from flagadmin.core.change_checks import KnownChange
from flagadmin.core.change_checks.comments import foresee
from flagadmin.core.db.transactions import change_once, transactional
from flagadmin.core.edit_conflicts import Expected, check_expected, hash_document
from flagadmin.core.errors import Conflict, InvalidOperation, NoAccess, Problem, check_problems
from groups.access import Caller, missing
from projects.access import access_flag_for_update, access_project_for_update, lock_projects
from projects.flags.actions import apply_tags, check_tags
from projects.flags.archive.actions import archive_flags_of_projects, revive_flags
from projects.flags.name_rules import find_remaining_owner
from projects.flags.payloads.actions import set_schema
from projects.history.definitions_at import make_seen_version, read_present_version
from projects.history.diff import DEPENDENCIES, DETAILS, FlagPart
from projects.models import Flag, ProjectEnvironment
from projects.reverts.change_plan import ChangePlan, FlagRevert, SubjectRevert, find_change, plan_change
from projects.reverts.environment_plan import (
    EVERYTHING,
    Choice,
    EnvironmentPlan,
    plan_environment,
    plan_revert,
)
from projects.reverts.parts import PlannedPart, format_moment, list_reasons, restore_parts
from projects.segments.actions import update_segment
from projects.states import FlagState
from projects.strategies.strategy_types import deprecate_strategy_type, reactivate_strategy_type
from projects.strategies.write import StateChange, replace_parents, write_states


@transactional
def revert_flag(
    project_id: str,
    name: str,
    at: datetime,
    *,
    choice: Choice = EVERYTHING,
    expected: Expected = None,
    caller: Caller,
) -> list[FlagPart]:
    """Restores the chosen parts of the flag, and returns those that changed.

    An existing strategy keeps its row; a removed one is restored with its id. Segments, tags and links do not change.
    `expected` refers to the flag's present version, or to its part in `GET`.

    Raises NotFound, NoAccess naming the environments in which a permission is missing, EditConflict, and Conflict
    naming everything that cannot be restored.
    """
    flag = access_flag_for_update(caller, project_id, name, None)
    plan = plan_revert(flag, at, lock=True, caller=caller)
    _check_unchanged(expected, plan.before)
    chosen = [planned for planned in plan.parts if choice.includes(planned.part)]
    parts = [planned.part for planned in chosen]
    _check_permissions(chosen, flag.project_id)
    _check_restorable(chosen, name)
    _write_parts([(flag, plan.before, parts)], subject=format_moment(at), caller=caller)
    return parts


def _check_unchanged(expected: Expected, before: FlagState) -> None:
    places = ProjectEnvironment.objects.filter(project=before["project"])
    if expected is not None:
        seen = make_seen_version(before, places.values_list("environment_id", flat=True))
        if hash_document(seen) not in expected:
            check_expected(expected, before)


@transactional
def revert_change(event_id: int, *, flag: str = "", caller: Caller) -> ChangePlan:
    """Reverts an event's change, or its part in one flag. Returns the plan.

    Raises NotFound, NoAccess, InvalidOperation for a change that cannot be reverted, and Conflict naming everything
    that has changed since or cannot be restored. Then nothing is changed.
    """
    events = find_change(caller, event_id, flag)
    _lock(events, caller)
    plan = plan_change(events, lock=True, caller=caller)
    if plan.refusal:
        raise InvalidOperation(plan.refusal)
    if plan.missing:
        raise NoAccess(" ".join(plan.missing))
    if plan.problems:
        raise Conflict(" ".join(list_reasons(plan.problems[:5])), details=plan.problems)
    _foresee(plan)
    _archive_and_revive(plan.flags, caller)
    for row in plan.flags:
        _restore(row, caller)
    for subject in plan.subjects:
        if subject.changes_anything:
            _restore_subject(subject, caller)
    return plan


@transactional
def revert_environment(
    environment: str,
    at: datetime,
    *,
    projects: Collection[str] = (),
    flags: Collection[str] | None = None,
    expected: Expected = None,
    caller: Caller,
) -> EnvironmentPlan:
    """Sets flags of an environment back to a moment. Returns what it did.

    ``flags`` None: all that differ and can be set back. ``projects`` empty: all in which the caller may change anything
    there. ``expected`` refers to the plan's document, of all flags.

    Raises NoAccess, EditConflict, Conflict for an unknown moment, InvalidOperation for too many flags, and
    ValidationError naming flags that cannot be set back. Then nothing is changed.
    """
    planned = plan_environment(environment, at, projects=projects, caller=caller)
    locked = lock_projects(caller, planned.projects)
    plan = plan_environment(environment, at, projects=projects, lock=True, caller=caller)
    check_expected(expected, plan.document)
    if flags is not None:
        check_problems(_list_unknown(flags, plan))
    plan = plan.only(locked, flags)
    rows = [(_lock_again(row.flag, caller), row.before, [row.planned.part]) for row in plan.flags]
    _write_parts(rows, subject=format_moment(at), caller=caller)
    return plan


def _lock_again(flag: Flag, caller: Caller) -> Flag:
    return access_flag_for_update(caller, flag.project_id, flag.name, None)


def _list_unknown(flags: Iterable[str], plan: EnvironmentPlan) -> Iterator[Problem]:
    kept = {row.name: row.reason for row in plan.kept_out}
    known = {row.flag.name for row in plan.flags}
    for index, name in enumerate(flags):
        if name not in known:
            reason = kept.get(name, f"has not changed in {plan.environment} since")
            yield Problem(f"features[{index}]", f"{name[:100]} {reason}")


def _lock(events: Iterable[AuditEvent], caller: Caller) -> None:
    """Locks the projects, so that none of their flags or segments changes."""
    for project in sorted({event.project for event in events if event.project and event.feature}):
        access_project_for_update(caller, project, None)


def _archive_and_revive(rows: Sequence[FlagRevert], caller: Caller) -> None:
    """Archives all together, because parents can be archived with their children."""
    names: dict[str, dict[str, list[str]]] = {"archive": {}, "revive": {}}
    for row in rows:
        if row.archival and row.flag is not None:
            names[row.archival].setdefault(row.flag.project_id, []).append(row.name)
    if names["archive"]:
        archive_flags_of_projects(names["archive"], caller=caller)
    for project, flags in names["revive"].items():
        revive_flags(project, flags, caller=caller)


def _restore(row: FlagRevert, caller: Caller) -> None:
    if row.flag is not None and row.schema is not None:
        set_schema(row.flag.project_id, row.name, row.schema["schema"], caller=caller)
    if row.flag is None or not (row.parts or row.add_tags or row.remove_tags):
        return
    flag = _lock_again(row.flag, caller)
    if row.parts:
        parts = [planned.part for planned in row.parts]
        _write_parts([(flag, read_present_version(flag), parts)], subject=None, caller=caller)
    if row.add_tags or row.remove_tags:
        check_tags(row.add_tags)
        apply_tags([flag], row.add_tags, row.remove_tags, caller=caller)


def _restore_subject(row: SubjectRevert, caller: Caller) -> None:
    event, before = row.event, row.before
    if event.type == E.SEGMENT_UPDATED:
        values: dict[str, Any] = {key: before[key] for key in ("name", "description", "constraints")}
        values["project_id"] = before.get("project")
        expected = frozenset([hash_document(row.now)])
        update_segment(before["id"], values, expected=expected, caller=caller)
    elif event.type == E.STRATEGY_DEPRECATED:
        reactivate_strategy_type(row.name, caller=caller)
    else:
        deprecate_strategy_type(row.name, caller=caller)


# Parts of a flag -----------------------------------------------------------------------------------------------


def _write_parts(
    rows: Sequence[tuple[Flag, FlagState, Sequence[FlagPart]]], *, subject: str | None, caller: Caller
) -> None:
    """Writes these parts of locked flags, with their present versions, and records one event of each flag.

    ``subject`` is the time of the version, None when reverting one change.
    """
    events = [
        Event.of_flag(
            E.FEATURE_REVERTED, flag, subject=subject, before=before, after=restore_parts(before, parts)
        )
        for flag, before, parts in rows
        if parts
    ]
    if not events:
        return
    if subject is not None:  # otherwise the whole change is asked for before
        foresee(events, KnownChange(_list_members((flag, parts) for flag, _, parts in rows)))
    for flag, _, parts in rows:
        for part in parts:
            _write(flag, part)
    record_all(events, actor=caller)


def _list_members(
    rows: Iterable[tuple[Flag, Iterable[FlagPart]]],
) -> dict[tuple[str, str], Mapping[str, Any] | None]:
    """The members that these parts give to flags, by the flag's name and the environment."""
    members = defaultdict[tuple[str, str], Any](dict)
    for flag, parts in rows:
        for part in parts:
            after = dict(part.after)
            if part.kind == DETAILS:
                after = {"impression_data": after["impressionData"]}
            members[flag.name, part.environment] |= after
    return dict(members)


def _foresee(plan: ChangePlan) -> None:
    """Raises the refusals of the change as a whole, unless it revives flags: what else they have is not known."""
    if not plan.flags and len(plan.subjects) == 1:
        change_once()
        return
    if any(row.archival == "revive" for row in plan.flags):
        return
    rows = [(row.flag, [each.part for each in row.parts]) for row in plan.flags if row.flag is not None]
    archived = [row.flag for row in plan.flags if row.flag is not None and row.archival == "archive"]
    changed = [row for row in plan.subjects if row.event.type == E.SEGMENT_UPDATED and row.changes_anything]
    segments = {row.before["id"]: {"constraints": row.before["constraints"]} for row in changed}
    events = [Event.of_flag(E.FEATURE_ARCHIVED, flag) for flag in archived]
    events += [Event(type=E.SEGMENT_UPDATED, after={"id": key}) for key in segments]
    for flag, parts in rows:
        places = [part.environment for part in parts if part.kind != DETAILS]
        kinds = {
            place: E.FEATURE_ENVIRONMENT_ENABLED if place else E.FEATURE_DEPENDENCY_ADDED for place in places
        }
        events += [Event.of_flag(kind, flag, place) for place, kind in kinds.items()]
    foresee(events, KnownChange(_list_members(rows) | {(flag.name, ""): None for flag in archived}, segments))


def _check_permissions(chosen: Iterable[PlannedPart], project: str) -> None:
    refused = [planned for planned in chosen if planned.missing]
    if not refused:
        return
    errors = [
        missing(planned.missing[:1], project=project, environment=planned.part.environment or None)
        for planned in refused
    ]
    permissions = list(dict.fromkeys(p.value for planned in refused for p in planned.missing))
    raise NoAccess.missing(permissions, " ".join(dict.fromkeys(error.message for error in errors)))


def _check_restorable(chosen: Iterable[PlannedPart], name: str) -> None:
    refused = [planned for planned in chosen if planned.problems]
    if not refused:
        return
    problems: Sequence[Problem] = [problem for planned in refused for problem in planned.problems]
    places = " and ".join(planned.part.environment or planned.part.kind for planned in refused)
    reasons = "; ".join(problem.message for problem in problems[:5])
    raise Conflict(
        f"{name} cannot be reverted completely: {reasons}. Leave out {places} to revert the rest.",
        details=problems,
    )


def _write(flag: Flag, part: FlagPart) -> None:
    if part.kind == DETAILS:
        after = part.after
        flag.description, flag.type, flag.stale = after["description"], after["type"], after["stale"]
        flag.impression_data = after["impressionData"]
        owner = find_remaining_owner(after["owner"])
        flag.owner_user_id, flag.owner_group_id = owner["owner_user_id"], owner["owner_group_id"]
        flag.save(update_fields=["description", "type", "stale", "impression_data", *owner])
    elif part.kind == DEPENDENCIES:
        replace_parents({flag.pk: part.after["dependencies"]})
    else:
        write_states([StateChange(flag.pk, part.environment, part.before, part.after)])
