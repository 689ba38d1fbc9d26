"""Plan → rows: one transaction under the project's lock, all or nothing, in a fixed number of statements."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import ParamSpec, TypeVar

import orjson
from django.db import IntegrityError
from django.utils import timezone

from flagadmin.audit.events import EventType
from flagadmin.audit.record import Event, copy_all
from flagadmin.db.transactions import transactional
from flagadmin.errors import NotFound, named_flags
from groups.access import Caller
from importer.apply import rows
from importer.apply.progress import Silent, Watcher, hold
from importer.body.schemas import Body
from importer.isolation import heavy_work
from importer.models import ImportRun
from importer.outdated_plan import Outdated, changed_since
from importer.plan.exclude import without
from importer.plan.import_plan import Action, FlagPlan
from importer.plan.build import Plan, plan_import
from importer.plan.stored import Document
from importer.report.document import bare_reports, write_reports
from projects.access import lock_projects
from projects.models import ContextField, Segment, TagType
from projects.project_scope import hold_segments

P = ParamSpec("P")
R = TypeVar("R")
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Checked:
    """What somebody saw and agreed to: a body, the fingerprint of its plan, when that was made, and which of its flags
    are not to be imported after all."""

    body: Body
    fingerprint: str
    made_at: datetime
    excluded: frozenset[str] = frozenset()


def _planned_anew(action: Callable[P, R]) -> Callable[P, R]:
    """Two requests may want the same new name at once, or refer to what another deletes at this moment. The one that
    loses is planned again, and then says so in the plan's own words."""

    @wraps(action)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(ATTEMPTS - 1):
            try:
                return action(*args, **kwargs)
            except (IntegrityError, NotFound):
                continue
        return action(*args, **kwargs)

    return run


@heavy_work
@_planned_anew
@transactional
def import_body(
    body: Body, *, caller: Caller, source: str = ImportRun.Source.API, watcher: Watcher | None = None
) -> ImportRun:
    """Plans and applies at once. Raises NoAccess, ValidationError: then nothing is written."""
    _lock(body, caller)
    plan = plan_import(body, caller=caller)
    plan.check()
    return _write(plan, ImportRun(source=source), caller, watcher or Silent())


@heavy_work
@_planned_anew
@transactional
def apply_checked(
    checked: Checked,
    *,
    caller: Caller,
    run: ImportRun | None = None,
    watcher: Watcher | None = None,
) -> ImportRun:
    """What was planned before, if it still is what would be planned. ``run`` is the pending run it belongs to.

    Raises NoAccess, ValidationError, and Outdated when something that the plan depends on has changed since.
    """
    _lock(checked.body, caller)
    if run is not None:
        hold(run.id)
    plan = plan_import(checked.body, caller=caller)
    if plan.fingerprint != checked.fingerprint:
        raise Outdated(changed_since(plan, checked.made_at))
    if checked.excluded:
        plan = _rest_of(plan, checked.excluded, caller)
    plan.check()
    return _write(plan, run or ImportRun(source=ImportRun.Source.API), caller, watcher or Silent())


def _lock(body: Body, caller: Caller) -> None:
    """The project, and the segments that its strategies may be given: they stay where the plan finds them."""
    lock_projects(caller, [body.project])
    names = {segment["name"] for segment in body.data.get("segments", ())}
    hold_segments(Segment.objects.filter(name__in=names).values_list("pk", flat=True))


def _rest_of(seen: Plan, excluded: frozenset[str], caller: Caller) -> Plan:
    """The plan without these flags. Raises Outdated where others fare differently without them: nobody saw that."""
    plan = plan_import(without(seen.body, excluded), caller=caller)
    plan.check()
    others = [flag.name for flag in plan.flags.values() if flag.action is not seen.flags[flag.name].action]
    if others:
        raise Outdated(f"Without the excluded flags the import does something else to {named_flags(others)}.")
    return plan


def apply_import(plan: Plan, *, caller: Caller, source: str = ImportRun.Source.API) -> ImportRun:
    """Applies this plan, if it is still valid. Raises what :func:`apply_checked` raises."""
    checked = Checked(plan.body, plan.fingerprint, plan.made_at)
    return apply_checked(checked, caller=caller, run=ImportRun(source=source))


def _write(plan: Plan, run: ImportRun, caller: Caller, watcher: Watcher) -> ImportRun:
    target = plan.target
    assert target is not None
    now, project, environment = timezone.now(), target.project.id, target.environment
    created = list(plan.with_action(Action.CREATE))
    changed = [(f.stored.id, f) for f in plan.with_action(Action.CHANGE) if f.stored is not None]
    watcher.total(len(created) + len(changed))
    vocabulary = _create_words(plan)
    new = rows.create_flags(created, project=project, caller=caller, now=now) if created else []
    if new:
        rows.create_switches(new, target.environments, environment)
    watcher.step("flags", len(created))
    rows.update_flags(changed, now)
    rows.set_switches(changed, environment)
    written = [*new, *changed]
    rows.write_details(written, project=project, environment=environment, now=now)
    watcher.step("strategies", len(written))
    rows.write_stages(new, [flag_id for flag_id, flag in written if _is_archived_now(flag)], now)
    watcher.step("history", len(written))
    _record(plan, vocabulary, caller)
    return _finish(run, plan, caller)


def _is_archived_now(flag: FlagPlan) -> bool:
    assert flag.after is not None
    return flag.after["archived"] and not (flag.before and flag.before["archived"])


# Vocabulary ------------------------------------------------------------------------------------------------


def _create_words(plan: Plan) -> list[Event]:
    """New context fields, tag types and segments, and the events that tell of them."""
    words = plan.words
    assert words is not None
    if words.new_fields:
        ContextField.objects.bulk_create(ContextField(**new) for new in words.new_fields)
    if words.new_tag_types:
        TagType.objects.bulk_create(TagType(**new) for new in words.new_tag_types)
    if words.new_segments:
        _create_segments(plan)
    kinds = (
        (EventType.CONTEXT_FIELD_CREATED, words.new_fields),
        (EventType.TAG_TYPE_CREATED, words.new_tag_types),
        (EventType.SEGMENT_CREATED, words.new_segments),
    )
    return [Event(type=kind, subject=new["name"], after=new) for kind, listed in kinds for new in listed]


def _create_segments(plan: Plan) -> None:
    """Puts the real ids in the place of the plan's own, in the strategies too."""
    words = plan.words
    assert words is not None
    created = Segment.objects.bulk_create(
        Segment(name=new["name"], constraints=new["constraints"]) for new in words.new_segments
    )
    ids = {new["id"]: row.id for new, row in zip(words.new_segments, created, strict=True)}
    for new in words.new_segments:
        new["id"] = ids[new["id"]]
    for flag in plan.with_action(Action.CREATE, Action.CHANGE):
        for strategy in (flag.after or {}).get("strategies", ()):
            strategy["segments"] = [ids.get(segment, segment) for segment in strategy["segments"]]


# Audit and run ---------------------------------------------------------------------------------------------


def _record(plan: Plan, vocabulary: list[Event], caller: Caller) -> None:
    """One event for the import, with its counts, and one for every flag created or changed."""
    body = plan.body
    summary = Event(
        type=EventType.FEATURES_IMPORTED,
        project=body.project,
        environment=body.environment,
        after=plan.counts,
    )
    copy_all(_events(plan, vocabulary, summary), actor=caller)


def _events(plan: Plan, vocabulary: list[Event], summary: Event) -> Iterator[Event]:
    yield from vocabulary
    for flag in plan.with_action(Action.CREATE, Action.CHANGE):
        yield Event(
            type=_kind(flag),
            project=plan.body.project,
            environment=plan.body.environment,
            feature=flag.name,
            before=flag.before,
            after=flag.after,
        )
    yield summary


def _kind(flag: FlagPlan) -> EventType:
    if flag.action is Action.CREATE:
        return EventType.FEATURE_CREATED
    return EventType.FEATURE_ARCHIVED if _is_archived_now(flag) else EventType.FEATURE_IMPORTED


def digest(document: Document) -> str:
    """Of a flag's document, to tell later whether it is still as it was."""
    return hashlib.blake2b(orjson.dumps(document, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()


def _finish(run: ImportRun, plan: Plan, caller: Caller) -> ImportRun:
    changed = list(plan.with_action(Action.CHANGE))
    written = [flag for flag in plan.with_action(Action.CREATE, Action.CHANGE) if flag.after is not None]
    run.state, run.finished_at = ImportRun.State.DONE, timezone.now()
    run.expires_at = run.body = None
    run.preview = {}
    run.caller_id, run.caller_name = caller.id, caller.name
    run.project, run.environment = plan.body.project, plan.body.environment
    run.counts, run.fingerprint = plan.counts, plan.fingerprint
    run.before = {flag.name: flag.before for flag in changed}
    run.after = {flag.name: digest(flag.after) for flag in written if flag.after}
    run.progress_done = run.progress_total = len(written)
    run.save()
    _keep_reports(run, plan)
    return run


def _keep_reports(run: ImportRun, plan: Plan) -> None:
    """A run that was checked has those of its check, with every difference, of this very plan."""
    if run.checked_at is None:
        write_reports(run, bare_reports(plan))
    elif run.left_out:
        run.reports.filter(name__in=run.left_out).delete()
