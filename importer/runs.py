"""Imports in two steps: a body is stored with a preview, and then confirmed by the user who uploaded it."""

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from flagadmin.core.change_checks import Refusal
from flagadmin.core.change_checks.comments import check_comment
from flagadmin.core.db.transactions import run_and_roll_back, run_with_retries, transactional
from flagadmin.core.errors import AppError, Conflict, NotFound, ValidationError, check_problems
from groups.access import Caller
from importer.apply.execute import (
    CheckedImport,
    OutdatedPlan,
    Progress,
    apply_checked,
    is_running,
    list_touched_places,
    write_progress,
)
from importer.body.schemas import Body, parse_body
from importer.bulk_work import bulk_work
from importer.converting.stored import StoredConversion
from importer.models import FlagReport, ImportRun
from importer.plan.build import plan_import
from importer.plan.entries import exclude_flags
from importer.plan.import_plan import Plan
from importer.promotion import PARTS, STRATEGIES, Promotion, read_promotion
from importer.report import Entry, find_needed_first, make_flag_reports, preview_document, write_reports
from projects.access import access_project
from releases.gate_refusal import NeedsChangeRequest

EXPIRES_AFTER = timedelta(days=1)
"""An unconfirmed import is deleted after this time."""
MAX_CHANGES = 20


# Finding ---------------------------------------------------------------------------------------------------


def find_last_target(caller: Caller) -> Mapping[str, Any]:
    """The project and environment of the caller's last import from a file. Empty if there is none."""
    own = ImportRun.objects.filter(caller_id=caller.id, caller_name=caller.name, promoted_from="")
    return own.values("project", "environment").first() or {}


def find_visible_runs(caller: Caller) -> QuerySet[ImportRun]:
    """Past imports of projects the caller may read, and the caller's own pending ones. Without bodies."""
    runs = ImportRun.objects.defer("body", "before", "after", "preview")
    readable = caller.match_readable("project")
    own = Q(caller_id=caller.id, caller_name=caller.name)
    pending = Q(state=ImportRun.State.PENDING)
    return runs.filter((readable & ~pending) | (own & pending & Q(expires_at__gt=timezone.now())))


def access_run(caller: Caller, run_id: UUID) -> ImportRun:
    """The run without its body. Raises NotFound, including for other users' pending runs."""
    runs = find_visible_runs(caller).filter(id=run_id).defer(None).defer("body", "before", "after")
    run = runs.first()
    if run is not None and run.state == ImportRun.State.RUNNING and not is_running(run.id):
        run = runs.first()  # it may have ended between the two checks
        if run is not None and run.state == ImportRun.State.RUNNING:
            # Its process was killed and its transaction rolled back. The next confirmation corrects the stored
            # state.
            run.state = ImportRun.State.PENDING
    if run is None:
        raise NotFound(f"Import {run_id} not found. It may have expired.")
    return run


# Uploading, checking, confirming ---------------------------------------------------------------------------


@bulk_work
@transactional
def create_run(
    body: bytes,
    *,
    caller: Caller,
    project: str | None = None,
    environment: str | None = None,
    file_name: str = "",
) -> ImportRun:
    """Creates a pending run with this body and its preview. Raises ValidationError for an invalid body."""
    parsed = parse_body(body, project=project, environment=environment)
    source = ImportRun.Source.CONSOLE
    return store_run(parsed, body, size=len(body), caller=caller, file_name=file_name, source=source)


def store_run(
    body: Body,
    content: bytes,
    *,
    size: int,
    caller: Caller,
    source: str,
    file_name: str = "",
    converted_from: str = "",
    promoted_from: str = "",
    preview: Mapping[str, Any] | None = None,
) -> ImportRun:
    """Stores ``content``, the source of the body, with the preview of the body."""
    plan = plan_import(body, caller=caller)
    delete_expired()
    run = ImportRun.objects.create(
        source=source,
        state=ImportRun.State.PENDING,
        caller_id=caller.id,
        caller_name=caller.name,
        project=body.project,
        environment=body.environment,
        converted_from=converted_from,
        promoted_from=promoted_from,
        file_name=file_name[:255],
        expires_at=timezone.now() + EXPIRES_AFTER,
        body=zlib.compress(content, 1),
        size=size,
        preview=preview or {},
    )
    _save_preview(run, plan)
    return run


@transactional
def create_promotion(promotion: Promotion, *, caller: Caller) -> ImportRun:
    """Creates a pending run of a promotion with its preview. Raises NotFound, ValidationError."""
    access_project(caller, promotion.project)
    return store_run(
        read_promotion(promotion),
        promotion.dump(),
        size=promotion.size,
        caller=caller,
        source=ImportRun.Source.CONSOLE,
        promoted_from=promotion.source,
    )


def get_promotion(run: ImportRun) -> Promotion:
    """The promotion of a pending run. Raises Conflict for any other run."""
    if run.body is None:
        raise Conflict(f"This promotion is {run.get_state_display().lower()} and no longer pending.")
    return Promotion.load(zlib.decompress(bytes(run.body)), project=run.project, target=run.environment)


@transactional
def change_parts(run_id: UUID, parts: frozenset[str], *, caller: Caller) -> None:
    """Changes the parts of a pending promotion. Raises NotFound, Conflict, and ValidationError for none."""
    if not parts or parts - set(PARTS):
        raise ValidationError.at("part", "must be strategies, variants or enabled")
    run = access_run(caller, run_id)
    promotion = replace(get_promotion(run), parts=parts)
    run.body = zlib.compress(promotion.dump(), 1)
    ImportRun.objects.filter(id=run.id, body__isnull=False).update(body=run.body)
    check_run(run, caller=caller)


def delete_expired() -> None:
    """Deletes expired runs, including those whose import was killed, but not running ones."""
    states = (ImportRun.State.PENDING, ImportRun.State.RUNNING)
    expired = ImportRun.objects.filter(state__in=states, expires_at__lte=timezone.now()).defer("body")
    ended = [run.id for run in expired if run.state == ImportRun.State.PENDING or not is_running(run.id)]
    ImportRun.objects.filter(id__in=ended).delete()


def load_body(run: ImportRun) -> Body:
    """The body of a pending run, without the excluded flags. Raises Conflict for any other run."""
    if run.body is None:
        raise Conflict(f"This import is {run.get_state_display().lower()} and no longer pending.")
    if run.promoted_from:
        body = read_promotion(get_promotion(run))
    else:
        unpacked = zlib.decompress(bytes(run.body))
        if run.converted_from:
            unpacked = StoredConversion.load(unpacked).convert().dump()
        body = parse_body(unpacked, project=run.project, environment=run.environment)
    return exclude_flags(body, run.excluded) if run.excluded else body


def _make_reader(run: ImportRun) -> Callable[[], Body]:
    """Makes a function that reads the body once the project is locked. An import's body is parsed before."""
    if not run.promoted_from:
        body = load_body(run)
        return lambda: body
    promotion, excluded = get_promotion(run), run.excluded
    return lambda: exclude_flags(read_promotion(promotion), excluded)


@bulk_work
@transactional
def check_run(run: ImportRun, *, caller: Caller, excluded: Iterable[str] | None = None) -> Plan:
    """Plans a pending run again and saves its preview. ``excluded`` replaces the excluded flags."""
    if excluded is not None:
        run.excluded = sorted(set(excluded))
    plan = plan_import(load_body(run), caller=caller)
    _save_preview(run, plan)
    return plan


def _save_preview(run: ImportRun, plan: Plan) -> None:
    """Raises Conflict if the run was confirmed in the meantime."""
    run.counts, run.fingerprint = plan.counts, plan.fingerprint
    conversion = {key: run.preview[key] for key in ("conversion",) if key in run.preview}
    run.preview, run.checked_at = preview_document(plan) | conversion, plan.made_at
    columns = ("excluded", "counts", "fingerprint", "preview", "checked_at")
    pending = ImportRun.objects.filter(id=run.id, body__isnull=False)
    if not pending.update(**{name: getattr(run, name) for name in columns}):
        raise Conflict("This import was confirmed in the meantime and is no longer pending.")
    run.reports.all().delete()
    write_reports(run, make_flag_reports(plan))


def confirm_run(
    run: ImportRun,
    *,
    caller: Caller,
    fingerprint: str,
    excluded: Iterable[str] = (),
    progress: Progress | None = None,
) -> ImportRun:
    """Makes the import shown by the preview with this ``fingerprint``, without the ``excluded`` flags.

    Raises OutdatedPlan if a later preview exists or the preview is outdated, and the errors of ``apply_checked``. The
    run then stays pending.
    """
    if run.checked_at is None or fingerprint != run.fingerprint:
        raise OutdatedPlan("This import was checked again after this page was opened.")
    excluded = frozenset(excluded)
    checked = CheckedImport(run.project, _make_reader(run), run.fingerprint, run.checked_at, excluded)
    run.excluded = sorted(excluded | {*run.excluded})
    try:
        with write_progress(run.id) as write:
            return apply_checked(checked, caller=caller, run=run, progress=progress or write)
    except BaseException:
        ImportRun.objects.filter(id=run.id, state=ImportRun.State.RUNNING).update(
            state=ImportRun.State.PENDING
        )
        raise


# Variants for another process: their arguments and results are cheap to pass -------------------------------


def check(run_id: UUID, *, caller: Caller, excluded: Iterable[str] | None = None) -> list[str]:
    """Checks a pending run again. Returns the differences between the new preview and the previous one."""
    run = access_run(caller, run_id)
    before = {report.name: report for report in run.reports.all()}
    check_run(run, caller=caller, excluded=excluded)
    return preview_changes(before, {report.name: report for report in run.reports.all()})


def preview_changes(before: dict[str, FlagReport], after: dict[str, FlagReport]) -> list[str]:
    """The differences between two previews, one line per flag, at most MAX_CHANGES."""
    lines = []
    for name, new in after.items():
        old = before.get(name)
        if old is None:
            lines.append(f"{name} is included again.")
        elif old.action != new.action:
            lines.append(f"{name}: {old.action} → {new.action}.")
        elif old.document() != new.document():
            lines.append(f"{name} is changed differently.")
    unlisted = len(lines) - MAX_CHANGES
    return [*lines[:MAX_CHANGES], f"{unlisted} more flags."] if unlisted > 0 else lines


def confirm(run_id: UUID, *, caller: Caller, fingerprint: str, excluded: Iterable[str]) -> None:
    """Like `confirm_run`. If a change request is needed, reports that its strategies replace a draft's.

    Raises ValidationError if no request can make the changes, because flags need new objects.
    """
    run, excluded = access_run(caller, run_id), frozenset(excluded)
    try:
        confirm_run(run, caller=caller, fingerprint=fingerprint, excluded=excluded)
    except NeedsChangeRequest as refusal:
        _check_needed_first(run_id, excluded, refusal, caller)
        parts = get_promotion(run).parts if run.promoted_from else {STRATEGIES}
        flags = {*run.reports.values_list("name", flat=True)} - {*excluded} if STRATEGIES in parts else ()
        raise refusal.instead(replaces_strategies=flags) from None


def _check_needed_first(
    run_id: UUID, excluded: frozenset[str], refusal: NeedsChangeRequest, caller: Caller
) -> None:
    run, gated = access_run(caller, run_id), refusal.gated  # its state before the attempt
    if gated.environment == run.environment and gated.changes:
        plan = plan_import(exclude_flags(load_body(run), excluded), caller=caller)
        check_problems(find_needed_first(plan, {change.feature for change in gated.changes}))


def run_document(run: ImportRun) -> dict[str, Any]:
    """The state and progress of a run."""
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


R = TypeVar("R")


def try_out(work: Callable[[], R]) -> R:
    """Returns the result of the work, and rolls it back."""
    return run_with_retries(lambda: run_and_roll_back(work))


def try_it(trial: Callable[[], R]) -> tuple[R | None, list[Entry]]:
    """The result of a trial, or None and the refusals.

    Raises temporary errors such as MaintenanceMode, which say nothing about the trial.
    """
    try:
        return trial(), []
    except (Refusal, AppError) as refused:
        error = refused.as_app_error() if isinstance(refused, Refusal) else refused
        if error.status >= 500:
            raise
        items = [str(problem) for problem in error.details]
        return None, [{"message": error.message, "affectedItems": items}]


def find_missing_comment(plan: Plan) -> list[Entry]:
    """Returns the error of a plan that lacks a required comment."""
    return try_it(lambda: check_comment(list_touched_places(plan)))[1]
