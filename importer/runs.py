"""Imports in two steps: a body is kept, looked at, and confirmed by the one who brought it."""

import zlib
from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from flagadmin.errors import Conflict, NotFound
from flagadmin.transactions import transactional
from groups.access import Caller
from importer.apply import Checked, apply_checked
from importer.leaving_out import without
from importer.models import ImportRun
from importer.plan import Plan, plan_import
from importer.progress import RunProgress, Watcher, is_held
from importer.report import flag_reports
from importer.wire import Body, parse_body

KEPT_FOR = timedelta(days=1)
"""A body that nobody confirms is forgotten after this."""


# Finding ---------------------------------------------------------------------------------------------------


def visible_runs(caller: Caller) -> QuerySet[ImportRun]:
    """Past imports of the projects that the caller may read, and the caller's own pending ones. Without bodies."""
    runs = ImportRun.objects.defer("body", "before", "after", "result")
    allowed = caller.readable_projects
    readable = Q() if allowed is None else Q(project__in=allowed)
    own = Q(caller_id=caller.id, caller_name=caller.name)
    waiting = Q(state=ImportRun.State.PENDING)
    return runs.filter((readable & ~waiting) | (own & waiting & Q(expires_at__gt=timezone.now())))


def access_run(caller: Caller, run_id: UUID) -> ImportRun:
    """Raises NotFound, for other people's pending runs too."""
    run = visible_runs(caller).filter(id=run_id).defer(None).first()
    if run is None:
        raise NotFound(f"There is no import {run_id}, or it has expired.")
    if run.state == ImportRun.State.RUNNING and not is_held(run.id):
        # Whoever was at it is gone, and all of it with it.
        ImportRun.objects.filter(id=run.id, state=ImportRun.State.RUNNING).update(
            state=ImportRun.State.PENDING
        )
        run.refresh_from_db()
    return run


# Keeping, checking, confirming -----------------------------------------------------------------------------


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
    """A pending run with this body. Raises ValidationError for one that is no import body."""
    parsed = parse_body(body, project=project, environment=environment)
    forget_expired()
    return ImportRun.objects.create(
        source=source,
        state=ImportRun.State.PENDING,
        caller_id=caller.id,
        caller_name=caller.name,
        project=parsed.project,
        environment=parsed.environment,
        file_name=file_name[:255],
        expires_at=timezone.now() + KEPT_FOR,
        body=zlib.compress(body, 1),
    )


def forget_expired() -> None:
    ImportRun.objects.filter(state=ImportRun.State.PENDING, expires_at__lte=timezone.now()).delete()


def body_of(run: ImportRun) -> Body:
    """The body of a pending run, without the flags that are left out. Raises Conflict for any other run."""
    if run.body is None:
        raise Conflict(f"This import is {run.get_state_display().lower()}; it no longer waits.")
    body = parse_body(_unpacked(run), project=run.project, environment=run.environment)
    return without(body, run.left_out) if run.left_out else body


def size_of(run: ImportRun) -> int:
    """Bytes of a pending run's body; 0 for any other run."""
    return len(_unpacked(run)) if run.body is not None else 0


def _unpacked(run: ImportRun) -> bytes:
    return zlib.decompress(bytes(run.body or b""))


@transactional
def check_run(run: ImportRun, *, caller: Caller, left_out: Iterable[str] | None = None) -> Plan:
    """Plans a pending run anew and keeps what the plan says. ``left_out`` are names of flags not to import."""
    if left_out is not None:
        run.left_out = sorted(set(left_out))
    plan = plan_import(body_of(run), caller=caller)
    run.counts, run.fingerprint = plan.counts, plan.fingerprint
    run.result, run.checked_at = flag_reports(plan), plan.made_at
    run.save(update_fields=["left_out", "counts", "fingerprint", "result", "checked_at"])
    return plan


def confirm_run(run: ImportRun, *, caller: Caller, watcher: Watcher | None = None) -> ImportRun:
    """Imports what the last check of this run showed. Raises what ``apply_checked`` raises; the run then waits on."""
    if run.checked_at is None:
        raise Conflict("This import has not been checked yet. Check it first.")
    checked = Checked(body_of(run), run.fingerprint, run.checked_at)
    try:
        with RunProgress(run.id) as progress:
            return apply_checked(checked, caller=caller, run=run, watcher=watcher or progress)
    except BaseException:
        ImportRun.objects.filter(id=run.id, state=ImportRun.State.RUNNING).update(
            state=ImportRun.State.PENDING
        )
        raise


def confirm(run_id: UUID, *, caller: Caller) -> None:
    """The same for a run that is not at hand."""
    confirm_run(access_run(caller, run_id), caller=caller)


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
