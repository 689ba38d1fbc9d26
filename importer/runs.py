"""Imports in two steps: a body is kept and checked, and confirmed by the one who brought it and saw the check."""

import zlib
from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from flagadmin.db.transactions import transactional
from flagadmin.errors import Conflict, NotFound
from groups.access import Caller
from importer.apply.execute import Checked, apply_checked
from importer.apply.progress import RunProgress, Watcher, is_held
from importer.body.schemas import Body, parse_body
from importer.isolation import heavy_work
from importer.models import ImportRun
from importer.outdated_plan import Outdated, told_changes
from importer.plan.exclude import without
from importer.plan.build import Plan, plan_import
from importer.report.document import flag_reports, preview_of, write_reports

KEPT_FOR = timedelta(days=1)
"""A body that nobody confirms is forgotten after this."""


# Finding ---------------------------------------------------------------------------------------------------


def visible_runs(caller: Caller) -> QuerySet[ImportRun]:
    """Past imports of the projects that the caller may read, and the caller's own pending ones. Without bodies."""
    runs = ImportRun.objects.defer("body", "before", "after", "preview")
    allowed = caller.readable_projects
    readable = Q() if allowed is None else Q(project__in=allowed)
    own = Q(caller_id=caller.id, caller_name=caller.name)
    waiting = Q(state=ImportRun.State.PENDING)
    return runs.filter((readable & ~waiting) | (own & waiting & Q(expires_at__gt=timezone.now())))


def access_run(caller: Caller, run_id: UUID) -> ImportRun:
    """Without the body. Raises NotFound, for other people's pending runs too."""
    runs = visible_runs(caller).filter(id=run_id).defer(None).defer("body", "before", "after")
    run = runs.first()
    if run is not None and run.state == ImportRun.State.RUNNING and not is_held(run.id):
        run = runs.first()  # it may have ended just now
        if run is not None and run.state == ImportRun.State.RUNNING:
            # Whoever was at it is gone, and all of it with it. What is stored says so at the next confirmation.
            run.state = ImportRun.State.PENDING
    if run is None:
        raise NotFound(f"There is no import {run_id}, or it has expired.")
    return run


# Keeping, checking, confirming -----------------------------------------------------------------------------


@heavy_work
@transactional
def keep_body(
    body: bytes,
    *,
    caller: Caller,
    project: str | None = None,
    environment: str | None = None,
    file_name: str = "",
    source: str = ImportRun.Source.CONSOLE,
) -> ImportRun:
    """A pending run with this body, checked. Raises ValidationError for one that is no import body."""
    parsed = parse_body(body, project=project, environment=environment)
    forget_expired()
    run = ImportRun.objects.create(
        source=source,
        state=ImportRun.State.PENDING,
        caller_id=caller.id,
        caller_name=caller.name,
        project=parsed.project,
        environment=parsed.environment,
        file_name=file_name[:255],
        expires_at=timezone.now() + KEPT_FOR,
        body=zlib.compress(body, 1),
        size=len(body),
    )
    _keep_check(run, plan_import(parsed, caller=caller))
    return run


def forget_expired() -> None:
    """Also those whose import was killed; one that is at work is let finish."""
    waiting = (ImportRun.State.PENDING, ImportRun.State.RUNNING)
    expired = ImportRun.objects.filter(state__in=waiting, expires_at__lte=timezone.now()).defer("body")
    over = [run.id for run in expired if run.state == ImportRun.State.PENDING or not is_held(run.id)]
    ImportRun.objects.filter(id__in=over).delete()


def body_of(run: ImportRun) -> Body:
    """The body of a pending run, without the flags that are left out. Raises Conflict for any other run."""
    if run.body is None:
        raise Conflict(f"This import is {run.get_state_display().lower()}; it no longer waits.")
    unpacked = zlib.decompress(bytes(run.body))
    body = parse_body(unpacked, project=run.project, environment=run.environment)
    return without(body, run.left_out) if run.left_out else body


@heavy_work
@transactional
def check_run(run: ImportRun, *, caller: Caller, left_out: Iterable[str] | None = None) -> Plan:
    """Plans a pending run anew and keeps what the plan says. ``left_out`` are names of flags not to import."""
    if left_out is not None:
        run.left_out = sorted(set(left_out))
    plan = plan_import(body_of(run), caller=caller)
    _keep_check(run, plan)
    return plan


def _keep_check(run: ImportRun, plan: Plan) -> None:
    """Raises Conflict where the run was confirmed meanwhile."""
    run.counts, run.fingerprint = plan.counts, plan.fingerprint
    run.preview, run.checked_at = preview_of(plan), plan.made_at
    kept = ("left_out", "counts", "fingerprint", "preview", "checked_at")
    waiting = ImportRun.objects.filter(id=run.id, body__isnull=False)
    if not waiting.update(**{name: getattr(run, name) for name in kept}):
        raise Conflict("This import was confirmed meanwhile; it no longer waits.")
    run.reports.all().delete()
    write_reports(run, flag_reports(plan))


def confirm_run(
    run: ImportRun, *, caller: Caller, seen: str, excluded: Iterable[str] = (), watcher: Watcher | None = None
) -> ImportRun:
    """Imports what was seen, but for flags to exclude. ``seen`` is the fingerprint of the check that was looked at.

    Raises Outdated where that is not the last one, or no longer true, and what ``apply_checked`` raises. The run then
    waits on.
    """
    if run.checked_at is None or seen != run.fingerprint:
        raise Outdated("This import was checked again after this page was opened.")
    excluded = frozenset(excluded)
    checked = Checked(body_of(run), run.fingerprint, run.checked_at, excluded)
    run.left_out = sorted(excluded | {*run.left_out})
    try:
        with RunProgress(run.id) as progress:
            return apply_checked(checked, caller=caller, run=run, watcher=watcher or progress)
    except BaseException:
        ImportRun.objects.filter(id=run.id, state=ImportRun.State.RUNNING).update(
            state=ImportRun.State.PENDING
        )
        raise


# For a process of their own: a run by its id, and answers that are small. ----------------------------------


def keep(body: bytes, *, caller: Caller, project: str, environment: str, file_name: str) -> UUID:
    run = keep_body(body, caller=caller, project=project, environment=environment, file_name=file_name)
    return run.id


def check(run_id: UUID, *, caller: Caller, left_out: Iterable[str] | None = None) -> list[str]:
    """Answers what the new preview says otherwise than the last one."""
    run = access_run(caller, run_id)
    before = {report.name: report for report in run.reports.all()}
    check_run(run, caller=caller, left_out=left_out)
    return told_changes(before, {report.name: report for report in run.reports.all()})


def confirm(run_id: UUID, *, caller: Caller, seen: str, excluded: Iterable[str]) -> None:
    confirm_run(access_run(caller, run_id), caller=caller, seen=seen, excluded=excluded)


def run_document(run: ImportRun) -> dict[str, Any]:
    """A run for lists and for whoever polls it."""
    return {
        "id": str(run.id),
        "state": run.state,
        "project": run.project,
        "environment": run.environment,
        "counts": run.counts,
        "step": run.step,
        "done": run.progress_done,
        "total": run.progress_total,
    }
