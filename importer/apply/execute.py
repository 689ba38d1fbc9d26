"""Plans and writes an import, in one transaction with the project locked.

Reports the progress of a large import on a separate connection while its transaction is open.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from itertools import chain
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Value
from django.db.models.functions import Concat
from django.utils import timezone

from flagadmin.core.audit.record import AuditEvent, Event, EventType, copy_all, read_transaction_time
from flagadmin.core.change_checks import KnownChange
from flagadmin.core.change_checks.comments import foresee
from flagadmin.core.db.statements import execute
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import Conflict, NotFound, name_flags
from groups.access import Caller
from importer.apply import rows
from importer.apply.rows import hash_document, lock_saved_contexts, write_saved_contexts
from importer.body.schemas import Body
from importer.bulk_work import bulk_work
from importer.models import ImportRun
from importer.plan.build import plan_import
from importer.plan.entries import exclude_flags
from importer.plan.import_plan import Action, FlagPlan, Plan
from importer.promotion import Promotion, read_promotion
from importer.report import make_brief_reports, make_promotion_document, write_reports
from projects.access import lock_projects
from projects.flags.queries import check_arrivals
from projects.models import ContextField, Segment, TagType
from projects.project_scope import hold_segments
from projects.segments.actions import event_document

Progress = Callable[[str, int, int], None]
"""Called after each step with its name, the number of flags done, and of all; first called before any step."""


def ignore_progress(step: str, done: int, total: int) -> None:
    """For imports without a viewer."""


@contextmanager
def write_progress(run_id: UUID) -> Iterator[Progress]:
    """Writes progress to a committed run, from which a page reads it."""
    own = connection.copy()

    def write(step: str, done: int, total: int) -> None:
        with own.cursor() as cursor:
            cursor.execute(
                "UPDATE importer_importrun SET state = 'running', step = %s, progress_done = %s, progress_total = %s"
                " WHERE id = %s",
                [step, done, total, run_id],
            )

    try:
        yield write
    finally:
        own.close()


def mark_running(run_id: UUID) -> None:
    """Makes :func:`is_running` true until the end of the transaction.

    The lock is released with its connection, so a killed import does not appear to be running.
    """
    execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [str(run_id)])


def is_running(run_id: UUID) -> bool:
    # In a transaction, because only its locks work behind a pooler.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock_shared(hashtextextended(%s, 0))", [str(run_id)])
        [free] = cursor.fetchone()
    return not free


P = ParamSpec("P")
R = TypeVar("R")
ATTEMPTS = 3


class OutdatedPlan(Conflict):
    """409: the import would no longer match its preview."""


@dataclass(frozen=True, slots=True)
class CheckedImport:
    """An import that a user confirmed: fingerprint and time of its plan, and flags excluded since.

    ``read_body`` is called with the project locked, so that the source of a promotion cannot change any more.
    """

    project: str
    read_body: Callable[[], Body]
    fingerprint: str
    made_at: datetime
    excluded: frozenset[str] = frozenset()


def _retry_when_missing(action: Callable[P, R]) -> Callable[P, R]:
    """Runs ``action`` again if another request deleted something that the plan refers to: the second plan reports it.

    ``transactional`` retries actions that create a name twice.
    """

    @wraps(action)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(ATTEMPTS - 1):
            try:
                return action(*args, **kwargs)
            except NotFound:
                continue
        return action(*args, **kwargs)

    return run


@bulk_work
@_retry_when_missing
@transactional
def import_body(
    body: Body,
    *,
    caller: Caller,
    source: str = ImportRun.Source.API,
    progress: Progress = ignore_progress,
) -> ImportRun:
    """Plans and applies an import in one step.

    Raises NoAccess or ValidationError without writing anything.
    """
    if body.data.get("payloadSchemas"):
        # Takes seconds if a schema is costly. Others can change the project meanwhile.
        plan_import(body, caller=caller).check()
    _, plan = _plan_locked(body.project, lambda: body, caller)
    plan.check()
    return _write(plan, ImportRun(source=source), caller, progress)


@bulk_work
@transactional
def import_part(body: Body, *, caller: Caller) -> Plan:
    """Imports a part of a larger change. Returns its plan; a plan without changes leaves no trace.

    Raises NoAccess or ValidationError without writing anything.
    """
    _, plan = _plan_locked(body.project, lambda: body, caller)
    plan.check()
    if any(plan.with_action(Action.CREATE, Action.CHANGE)):
        _write(plan, ImportRun(source=ImportRun.Source.API), caller)
    return plan


@bulk_work
@_retry_when_missing
@transactional
def promote_flags(promotion: Promotion, *, expected: Expected = None, caller: Caller) -> ImportRun:
    """Plans and applies a promotion in one step.

    Raises NoAccess, ValidationError, and EditConflict if ``make_promotion_document`` of the plan differs from
    ``expected``, without writing anything.
    """
    _, plan = _plan_locked(promotion.project, lambda: read_promotion(promotion), caller)
    check_expected(
        expected, make_promotion_document(promotion, plan), "The plan has changed. Nothing was promoted."
    )
    plan.check()
    return _write(plan, ImportRun(source=ImportRun.Source.API, promoted_from=promotion.source), caller)


@bulk_work
@_retry_when_missing
@transactional
def apply_checked(
    checked: CheckedImport,
    *,
    caller: Caller,
    run: ImportRun,
    progress: Progress = ignore_progress,
) -> ImportRun:
    """Applies a confirmed plan; ``run`` is its pending run.

    Raises NoAccess, ValidationError, and OutdatedPlan when anything that the plan depends on has changed.
    """
    mark_running(run.id)
    body, plan = _plan_locked(checked.project, checked.read_body, caller)
    if plan.fingerprint != checked.fingerprint:
        raise OutdatedPlan(describe_change(plan, checked.made_at))
    if checked.excluded:
        plan = _plan_without(checked.excluded, body, plan, caller)
    plan.check()
    return _write(plan, run, caller, progress)


def _plan_locked(project: str, read_body: Callable[[], Body], caller: Caller) -> tuple[Body, Plan]:
    """Locks the project, then the segments and saved contexts in the body, so that they cannot change after
    planning.
    """
    lock_projects(caller, [project])
    body = read_body()
    names = {segment["name"] for segment in body.data.get("segments", ())}
    hold_segments(Segment.objects.filter(name__in=names).values_list("pk", flat=True))
    if saved := body.data.get("savedContexts"):
        lock_saved_contexts(entry["name"].strip() for entry in saved)
    return body, plan_import(body, caller=caller)


def _plan_without(excluded: frozenset[str], body: Body, plan: Plan, caller: Caller) -> Plan:
    """The plan without the excluded flags. Raises OutdatedPlan if this affects any other flag."""
    rest = plan_import(exclude_flags(body, excluded), caller=caller)
    rest.check()
    affected = [flag.name for flag in rest.flags.values() if flag.action is not plan.flags[flag.name].action]
    if affected:
        raise OutdatedPlan(f"Excluding these flags changes what the import does to {name_flags(affected)}.")
    return rest


def describe_change(plan: Plan, made_at: datetime) -> str:
    """A message such as ``one-click-pay was changed at 10:14, after this check.``"""
    event = find_last_change(plan.flags, made_at)
    if event is None:
        noun = "import" if plan.parts is None else "promotion"
        return f"Something in {plan.project} that this {noun} needs was changed after this check."
    return f"{event.feature} was changed at {event.created_at:%H:%M}, after this check."


def find_last_change(flags: Iterable[str], since: datetime) -> AuditEvent | None:
    events = AuditEvent.objects.filter(feature__in=list(flags), created_at__gt=since)
    return events.newest_first().first()


def _write(plan: Plan, run: ImportRun, caller: Caller, progress: Progress = ignore_progress) -> ImportRun:
    target = plan.target
    assert target is not None
    changing = plan.with_action(Action.CREATE, Action.CHANGE)
    known = dict(chain.from_iterable(flag.know(plan.project, plan.environment) for flag in changing))
    expects = not any(saved.action is not Action.SAME for saved in plan.saved_contexts.values())
    foresee(list_touched_places(plan), KnownChange(known, keeps_expectations=expects))
    now, project, environment = timezone.now(), target.project.id, target.environment
    created = list(plan.with_action(Action.CREATE))
    changed = [(f.stored.id, f) for f in plan.with_action(Action.CHANGE) if f.stored is not None]
    total = len(created) + len(changed)
    progress("", 0, total)
    references_created = _create_references(plan, caller)
    new = rows.create_flags(created, project=project, caller=caller, now=now) if created else []
    check_arrivals([flag.name for flag in created], project, None, caller)
    progress("flags", len(created), total)
    rows.update_flags(changed, now)
    written = [*new, *changed]
    places: Any = {"environment": environment, "environments": target.environments}
    rows.write_details(written, project=project, now=now, **places)
    progress("strategies", total, total)
    rows.write_stages(new, [flag_id for flag_id, flag in written if flag.becomes_archived], now)
    progress("history", total, total)
    saved_context_events, run.saved_contexts = write_saved_contexts(plan, caller)
    _record(plan, [*references_created, *saved_context_events], run, caller)
    return _finish(run, plan, caller)


# References ------------------------------------------------------------------------------------------------


def _create_references(plan: Plan, caller: Caller) -> list[Event]:
    """Creates context fields, tag types and segments. Returns their audit events."""
    references = plan.references
    assert references is not None
    fields = ContextField.objects.bulk_create([ContextField(**new) for new in references.new_fields])
    tag_types = TagType.objects.bulk_create([TagType(**new) for new in references.new_tag_types])
    segments = _create_segments(plan, caller)
    return [
        *(
            Event(
                type=EventType.CONTEXT_FIELD_CREATED,
                project=field.project_id,
                subject=field.name,
                after=field.document(),
            )
            for field in fields
        ),
        *(
            Event(type=EventType.TAG_TYPE_CREATED, subject=tag_type.name, after=tag_type.document())
            for tag_type in tag_types
        ),
        *(
            Event(type=EventType.SEGMENT_CREATED, subject=segment.name, after=event_document(segment))
            for segment in segments
        ),
    ]


def _create_segments(plan: Plan, caller: Caller) -> list[Segment]:
    """Creates segments and replaces the plan's temporary negative ids, also in strategies."""
    references = plan.references
    assert references is not None
    if not references.new_segments:
        return []
    created = Segment.objects.bulk_create(
        Segment(name=new["name"], constraints=new["constraints"], created_by=caller.name)
        for new in references.new_segments
    )
    ids = {new["id"]: row.id for new, row in zip(references.new_segments, created, strict=True)}
    for new in references.new_segments:
        new["id"] = ids[new["id"]]
    for flag in plan.with_action(Action.CREATE, Action.CHANGE):
        for strategy in (flag.after or {}).get("strategies", ()):
            strategy["segments"] = [ids.get(segment, segment) for segment in strategy["segments"]]
    return created


# Audit and run ---------------------------------------------------------------------------------------------


def _record(plan: Plan, other_events: list[Event], run: ImportRun, caller: Caller) -> None:
    """Writes an audit event for each flag created or changed, and one with the counts of the import."""
    summary = Event(
        type=EventType.FEATURES_PROMOTED if run.promoted_from else EventType.FEATURES_IMPORTED,
        project=plan.project,
        environment=plan.environment,
        subject=run.promoted_from or None,
        after=plan.counts,
    )
    copy_all(chain(other_events, _make_flag_events(plan, run), [summary]), actor=caller)


def list_touched_places(plan: Plan) -> Iterator[Event]:
    """Events of all places that the import changes, for `check_comment`."""
    yield Event(type=EventType.FEATURES_IMPORTED, project=plan.project, environment=plan.environment)
    if any(flag.becomes_archived for flag in plan.with_action(Action.CHANGE)):
        yield Event(type=EventType.FEATURE_ARCHIVED, project=plan.project)


def _make_flag_events(plan: Plan, run: ImportRun) -> Iterator[Event]:
    for flag in plan.with_action(Action.CREATE, Action.CHANGE):
        kind = EventType.FEATURE_PROMOTED if run.promoted_from else _choose_event_type(flag)
        yield flag.make_event(kind, plan, subject=run.promoted_from or None)


def _choose_event_type(flag: FlagPlan) -> EventType:
    if flag.action is Action.CREATE:
        return EventType.FEATURE_CREATED
    return EventType.FEATURE_ARCHIVED if flag.becomes_archived else EventType.FEATURE_IMPORTED


def _finish(run: ImportRun, plan: Plan, caller: Caller) -> ImportRun:
    changed = list(plan.with_action(Action.CHANGE))
    written = [flag for flag in plan.with_action(Action.CREATE, Action.CHANGE) if flag.after is not None]
    run.state, run.finished_at = ImportRun.State.DONE, read_transaction_time()
    run.expires_at = run.body = None
    run.preview = {}
    run.caller_id, run.caller_name = caller.id, caller.name
    run.project, run.environment = plan.project, plan.environment
    run.counts, run.fingerprint = plan.counts, plan.fingerprint
    run.before = {flag.name: flag.before for flag in changed}
    run.after = {flag.name: hash_document(flag.after) for flag in written if flag.after}
    run.progress_done = run.progress_total = len(written)
    run.save()
    _write_reports(run, plan)
    return run


def _write_reports(run: ImportRun, plan: Plan) -> None:
    """Writes the reports of an import without a preview, else deletes the preview's for excluded flags.

    From now on, all readers of the project see them, so they no longer name other projects.
    """
    if run.checked_at is None:
        write_reports(run, make_brief_reports(plan))
    elif run.excluded:
        run.reports.filter(name__in=run.excluded).delete()
    if any(flag.stored and flag.stored.project != plan.project for flag in plan.with_action(Action.SKIP)):
        reason = Concat("name", Value(" is archived in another project and will be skipped."))
        run.reports.filter(action=Action.SKIP.value, is_here=False).update(reason=reason)
