"""Moves from the console: in a thread of the worker that was asked, because the token is in its memory alone."""

import logging
import threading
from collections.abc import Callable
from functools import partial
from uuid import UUID

from django.db import connections, transaction
from django.utils import timezone

from flagadmin.core.db.statements import execute
from flagadmin.core.errors import AppError, Conflict
from importer.models import InstallationMove
from importer.moving.leave_out import read_choices
from importer.moving.proving.prove import prove
from importer.moving.reading.source import Source
from importer.moving.report import strip_controls
from importer.moving.run import WantedMove, move_from

logger = logging.getLogger(__name__)
BEAT = 1.0  # seconds
KEPT = 20
"""The latest runs."""
Step = InstallationMove.Step
_ONE_AT_A_TIME = "LOCK TABLE importer_installationmove IN SHARE ROW EXCLUSIVE MODE"
"""Locking the latest run would let those that wait for it begin beside the next one, and there may be none."""


def begin(run: InstallationMove, source: Source, csv: bytes = b"") -> None:
    """Stores the run and begins it once that is committed. Raises Conflict if another is running."""
    with transaction.atomic():
        execute(_ONE_AT_A_TIME)
        latest = InstallationMove.objects.order_by("-created_at").first()
        if latest is not None and latest.is_running:
            raise Conflict(
                f"{latest.caller_name} started a move at {latest.created_at:%H:%M} UTC. Wait until it ends."
            )
        old = InstallationMove.objects.order_by("-created_at").values_list("pk", flat=True)[KEPT - 1 :]
        InstallationMove.objects.filter(pk__in=list(old)).delete()
        run.save()
        transaction.on_commit(partial(start, run.pk, source, partial(work, run, source, csv)))


def start(run_id: UUID, source: Source, do: Callable[[], None]) -> None:
    done = threading.Event()
    threading.Thread(target=_do, args=(do, done), name="move", daemon=True).start()
    threading.Thread(target=_beat, args=(run_id, source, done), name="move-beat", daemon=True).start()


def _do(do: Callable[[], None], done: threading.Event) -> None:
    try:
        do()
    finally:
        done.set()
        connections.close_all()


def _beat(run_id: UUID, source: Source, done: threading.Event) -> None:
    """Says that the run goes on, and how far it is."""
    try:
        while not done.wait(BEAT):
            text = f"{source.answers:,} answers of the other server so far."
            InstallationMove.objects.filter(pk=run_id, finished_at=None).update(
                beat_at=timezone.now(), progress=text
            )
    finally:
        connections.close_all()


def work(run: InstallationMove, source: Source, csv: bytes) -> None:
    """Does what the run says, and stores what has come of it."""
    try:
        _do_steps(run, source, csv)
    except AppError as error:
        run.problem = strip_controls(error.message)
    except Exception:
        logger.exception("a move from the console failed")
        run.problem = "The move failed; this server's log says why."
    run.finished_at = timezone.now()
    run.progress = ""
    run.save()


def _do_steps(run: InstallationMove, source: Source, csv: bytes) -> None:
    left_out = read_choices(run.left_out, "left_out")
    wanted = WantedMove(projects=run.projects, left_out=left_out, overwrite=run.overwrite, by=run.caller_name)
    if run.step != Step.PROVE:
        _, report = move_from(source, wanted, write=run.step == Step.APPLY)
        run.report = report.document()
        if report.is_refused or run.step == Step.PLAN:
            return
    proofs = prove(source, users=run.users, csv=csv, projects=run.projects, left_out=left_out)
    run.proofs = [proof.document() for proof in proofs]
