"""Undoes an import if nothing that it wrote has changed since."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from django.utils import timezone

from flagadmin.core.audit.record import AuditEvent, Event, EventType, copy_all
from flagadmin.core.change_checks import KnownChange
from flagadmin.core.change_checks.comments import foresee
from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.db.transactions import consistent_reads, transactional
from flagadmin.core.errors import MAX_DETAILS, Conflict, NotFound, Problem, choices
from groups.access import Caller, Permission
from groups.models import User
from importer.apply import rows
from importer.apply.execute import find_last_change
from importer.apply.rows import hash_document, undo_saved_contexts
from importer.models import ImportRun
from importer.plan.checks import (
    change_permissions,
    find_missing_permissions,
    read_dependencies,
)
from importer.plan.import_plan import Action, FlagPlan, StoredFlag, read_flags
from importer.plan.target import make_no_access
from projects.access import access_project_for_update
from projects.flags.actions import check_room
from projects.flags.archive.actions import check_no_children, remove_flags
from projects.flags.dependencies.actions import FlagState, ProposedDependency, dependency_problems
from projects.history.changes import change_of
from projects.history.queries import readable_events
from projects.models import Flag, FlagEnvironment
from projects.states import IN_ENVIRONMENT
from projects.strategies.known_names import load_known_names

_CHANGED_IN_OTHER_ENVIRONMENTS = """
SELECT f.name FROM projects_flag f
 WHERE f.id = ANY(%(flags)s)
   AND (EXISTS (SELECT FROM projects_strategy s
                 WHERE s.flag_id = f.id AND s.environment_id <> %(environment)s)
        OR EXISTS (SELECT FROM projects_flagenvironment e
                    WHERE e.flag_id = f.id AND e.environment_id <> %(environment)s
                      AND (e.enabled OR e.variants <> '[]')))
 ORDER BY f.name
"""


@transactional
def undo_import(run_id: UUID, *, caller: Caller) -> ImportRun:
    """Restores changed flags and deletes created ones, or archives those that have been used since.

    Does the same for saved contexts, which must not have changed since either.

    Keeps context fields, tag types and segments created by the import. Raises NotFound, NoAccess, Conflict (with the
    changes since), and the errors of archiving and reviving.
    """
    run = ImportRun.objects.filter(id=run_id).first()
    if run is None or not caller.can_read(run.project):
        raise NotFound(f"Import {run_id} not found.")
    needed = None if run.promoted_from else Permission.UPDATE_FEATURE
    project = access_project_for_update(caller, run.project, needed)
    run = ImportRun.objects.select_for_update().get(id=run_id)
    plans = _plan_and_check(run, caller)
    check_room(project, sum(plan.is_revived for plan in plans))
    untouched = _find_untouched(plans, run)
    kept_plans = [plan for plan in plans if plan.stored and plan.stored.id not in untouched]
    known = KnownChange(
        dict(chain.from_iterable(plan.know(run.project, run.environment) for plan in kept_plans)),
        deleted=[plan.name for plan in plans if plan not in kept_plans],
        keeps_expectations=not run.saved_contexts,
    )
    event = Event(type=EventType.IMPORT_UNDONE, project=run.project, environment=run.environment)
    foresee([event], known)
    events = list(undo_saved_contexts(run.saved_contexts, caller))
    _write(kept_plans, untouched, run, caller, events)
    run.state = ImportRun.State.UNDONE
    run.save(update_fields=["state"])
    return run


@dataclass(frozen=True, slots=True)
class Undoing:
    """The effects of undoing an import, planned or done, as names of flags. If done: its ``event`` and ``actor``."""

    restored: Sequence[str]
    deleted: Sequence[str]
    archived: Sequence[str]
    event: AuditEvent | None = None
    actor: str = ""


@consistent_reads()
def plan_undo(run: ImportRun, *, caller: Caller) -> Undoing:
    """Raises the errors of undoing the import, without checking whether saved contexts have changed."""
    plans = _plan_and_check(run, caller)
    untouched = _find_untouched(plans, run)
    created = [plan for plan in plans if plan.name not in run.before and plan.stored]
    return Undoing(
        [plan.name for plan in plans if plan.name in run.before],
        [plan.name for plan in created if plan.stored and plan.stored.id in untouched],
        [plan.name for plan in created if plan.stored and plan.stored.id not in untouched],
    )


def check_may_undo(run: ImportRun, *, caller: Caller) -> None:
    """Checks without reading flags: the state, and a permission without which no flag could be restored.

    Raises NoAccess, Conflict.
    """
    needed = IN_ENVIRONMENT if run.promoted_from else [Permission.UPDATE_FEATURE]
    caller.check_any(needed, project=run.project, environment=run.environment)
    _check_state(run)


def find_undoing(run: ImportRun, *, caller: Caller) -> Undoing | None:
    """The effects of a completed undo. None if the caller may not read them."""
    undone = EventType.PROMOTION_UNDONE if run.promoted_from else EventType.IMPORT_UNDONE
    events = readable_events(caller).filter(project=run.project, type=undone.value)
    event = events.filter(feature=None, after__import=str(run.id)).newest_first().first()
    if event is None:
        return None
    flags: dict[str, list[str]] = {}
    change = change_of(event, caller=caller).exclude(feature=None)
    for kind, flag in change.order_by("feature").values_list("type", "feature"):
        flags.setdefault(kind, []).append(str(flag))
    deleted = flags.pop(EventType.FEATURE_DELETED.value, [])
    archived = [name for name in flags.pop(EventType.FEATURE_ARCHIVED.value, []) if name not in run.before]
    restored = sorted({*run.before} - {*deleted, *archived})
    person = event.actor_id and User.objects.filter(pk=event.actor_id).first()
    return Undoing(restored, deleted, archived, event, person.display_name if person else event.actor_name)


def _check_state(run: ImportRun) -> None:
    if run.state != ImportRun.State.DONE:
        raise Conflict(
            f"This {run.noun} is {run.get_state_display().lower()}. Only a completed one can be undone."
        )


def _plan_and_check(run: ImportRun, caller: Caller) -> list[FlagPlan]:
    _check_state(run)
    stored = read_flags(list(run.after), project=run.project, environment=run.environment)
    _check_unchanged(run, stored)
    plans = [_plan_restored(stored[name], run) for name in run.after]
    _check_permissions(plans, run, caller)
    _check_references(plans, run.project)
    _check_parents(plans, run.project, caller)
    return plans


def _check_unchanged(run: ImportRun, stored: dict[str, StoredFlag]) -> None:
    """Raises Conflict with all flags that have changed or disappeared since."""
    gone, changed = [], []
    for name, expected in run.after.items():
        flag = stored.get(name)
        if flag is None or flag.document is None:
            gone.append(name)
        elif hash_document(flag.document) != expected:
            changed.append(name)
    created = [flag.id for name, flag in stored.items() if name not in run.before]
    rows = fetch_rows(_CHANGED_IN_OTHER_ENVIRONMENTS, {"flags": created, "environment": run.environment})
    changed = sorted({*changed, *(name for (name,) in rows)})
    if not gone and not changed:
        return
    problems = [Problem(name, _describe_gone(name, run)) for name in gone]
    problems += [Problem(name, _describe_changed(name, run)) for name in changed[:MAX_DETAILS]]
    others = [*gone, *changed][1:]
    more = f" Also changed since: {choices(others)}." if others else ""
    raise Conflict(f"{problems[0].message}, so it cannot be undone.{more}", details=problems[:MAX_DETAILS])


def _describe_gone(name: str, run: ImportRun) -> str:
    return f"{name} is no longer in {run.project}"


def _describe_changed(name: str, run: ImportRun) -> str:
    event = find_last_change([name], run.finished_at) if run.finished_at else None
    when = f" on {event.created_at:%-d %B} at {event.created_at:%H:%M}" if event else ""
    return f"{name} was changed{when} after this {run.noun}"


def _plan_restored(stored: StoredFlag, run: ImportRun) -> FlagPlan:
    before = run.before.get(stored.name)
    after = before if before is not None else {**(stored.document or {}), "archived": True, "enabled": False}
    return FlagPlan(stored.name, "", Action.CHANGE, stored, after)


def _check_permissions(plans: list[FlagPlan], run: ImportRun, caller: Caller) -> None:
    """Undoing requires the permissions for the reverse changes, such as deleting a created flag."""
    required = _list_needed_permissions(plans, run)
    missing = find_missing_permissions(required, run.project, run.environment, caller=caller)
    if missing:
        raise make_no_access(missing, run.project)
    revived = [plan.stored.id for plan in plans if plan.stored and plan.is_revived]
    if revived:
        _check_turned_on(revived, run, caller)


def _check_turned_on(revived: list[int], run: ImportRun, caller: Caller) -> None:
    """Checks the permission to turn on a revived flag in each other environment in which it would be on again."""
    on = FlagEnvironment.objects.filter(flag__in=revived, enabled=True).exclude(environment=run.environment)
    for environment in on.order_by("environment_id").values_list("environment_id", flat=True).distinct():
        caller.check(Permission.UPDATE_FEATURE_ENVIRONMENT, project=run.project, environment=environment)


def _list_needed_permissions(plans: list[FlagPlan], run: ImportRun) -> list[Permission]:
    was_there = [plan for plan in plans if plan.name in run.before]
    needed = change_permissions(was_there, run.environment)
    if any(plan.differs("parents") for plan in was_there):
        needed.append(Permission.UPDATE_FEATURE_DEPENDENCY)
    return needed if len(was_there) == len(plans) else [Permission.DELETE_FEATURE, *needed]


def _check_references(plans: list[FlagPlan], project: str) -> None:
    """Raises an error if anything the restored flags refer to has been deleted or moved since."""
    known_names = load_known_names(project)
    documents = [plan.after for plan in plans if plan.after is not None]
    strategies = [strategy for document in documents for strategy in document["strategies"]]
    segments = {segment for strategy in strategies for segment in strategy["segments"]}
    missing = [f"segment {key}" for key in sorted(segments - known_names.segments.keys())]
    tag_types = {tag[0] for document in documents for tag in document["tags"]}
    missing += [f"tag type {name}" for name in sorted(tag_types - known_names.tag_types)]
    types = {strategy["name"] for strategy in strategies}
    missing += [f"strategy type {name}" for name in sorted(types - known_names.strategy_types)]
    if missing:
        raise Conflict(
            f"This import cannot be undone: it needs {choices(missing)}, no longer available in {project}."
        )


def _check_parents(plans: list[FlagPlan], project: str, caller: Caller) -> None:
    """Checks restored dependencies like new ones: a parent may have been archived or moved since."""
    active = (plan for plan in plans if plan.after and not plan.after["archived"])
    affected = {plan.name: plan for plan in active if plan.is_revived or plan.differs("parents")}
    proposed = [
        ProposedDependency(name, parent["feature"], name)
        for name, plan in affected.items()
        for parent in (plan.after or {})["parents"]
    ]
    if not proposed:
        return
    parents = Flag.objects.readable_by(caller).filter(name__in={dependency.parent for dependency in proposed})
    locations = {flag.name: FlagState(flag.project_id, flag.is_archived) for flag in parents}
    locations |= {
        plan.name: FlagState(project, plan.after["archived"]) for plan in plans if plan.after is not None
    }
    pairs = [(child, parent) for child, parent in read_dependencies(project) if child not in affected]
    if problems := list(dependency_problems(proposed, project=project, flags=locations, existing=pairs)):
        first = problems[0]
        message = f"This import cannot be undone: {first.path} would depend on a flag that can no longer be its parent"
        raise Conflict(f"{message}: {first.message}.", details=problems)


_USED = """
SELECT f.id FROM projects_flag f
 WHERE f.id = ANY(%(flags)s)
   AND (EXISTS (SELECT FROM projects_flagusage u WHERE u.flag_id = f.id)
        OR EXISTS (SELECT FROM projects_flaglastseen s WHERE s.flag_id = f.id)
        OR EXISTS (SELECT FROM projects_favouriteflag v WHERE v.flag_id = f.id)
        OR EXISTS (SELECT FROM audit_auditevent e WHERE e.feature = f.name AND e.created_at > %(since)s))
"""


def _find_untouched(plans: list[FlagPlan], run: ImportRun) -> set[int]:
    """The ids of created flags that have not been used or changed since and can be deleted safely."""
    created = {plan.stored.id for plan in plans if plan.stored and plan.name not in run.before}
    return created - {
        flag_id for (flag_id,) in fetch_rows(_USED, {"flags": list(created), "since": run.finished_at})
    }


def _write(
    kept_plans: list[FlagPlan], deleted: set[int], run: ImportRun, caller: Caller, events: list[Event]
) -> None:
    now = timezone.now()
    numbered = [(plan.stored.id, plan) for plan in kept_plans if plan.stored is not None]
    archived = [flag_id for flag_id, plan in numbered if plan.becomes_archived]
    revived = [flag_id for flag_id, plan in numbered if plan.is_revived]
    rows.update_flags(numbered, now)
    rows.write_details(numbered, project=run.project, environment=run.environment, now=now)
    rows.end_archived_stage(revived)
    rows.write_stages([], archived, now)
    # Deletes them unchanged, so that the event describes their last state.
    remove_flags(list(Flag.objects.filter(id__in=deleted)), caller=caller)
    check_no_children(list(Flag.objects.filter(id__in=archived)), "archived")
    copy_all([*events, *_make_events(kept_plans, run)], actor=caller)


def _make_events(plans: list[FlagPlan], run: ImportRun) -> Iterator[Event]:
    undone = EventType.PROMOTION_UNDONE if run.promoted_from else EventType.IMPORT_UNDONE
    for plan in plans:
        kind = EventType.FEATURE_ARCHIVED if plan.becomes_archived else undone
        yield plan.make_event(EventType.FEATURE_REVIVED if plan.is_revived else kind, run)
    yield Event(
        type=undone,
        project=run.project,
        environment=run.environment,
        before=run.counts,
        after={"import": str(run.id)},
    )
