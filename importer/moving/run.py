"""Reads another installation and moves it, from a command or from the console.

The console's moves run in a thread of the worker that got the request, because only its memory has the token.

Repeatedly moves the changes in another installation, and proves each move.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone

from flagadmin.core.db.statements import execute
from flagadmin.core.errors import AppError, Conflict
from importer.models import InstallationMove
from importer.moving.leave_out import Choice, leave_out, read_choices
from importer.moving.proving.answers import TokenProof
from importer.moving.proving.prove import prove
from importer.moving.reading.database import open_database
from importer.moving.reading.installation import Installation
from importer.moving.reading.read import read_installation
from importer.moving.reading.read_hidden import add_hidden, list_projects
from importer.moving.reading.shapes import Shape, read_shape
from importer.moving.reading.source import Source
from importer.moving.report import Report, strip_controls
from importer.moving.writing.move import move


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedMove:
    """The requested move: some projects or all, with the database at a URL, with or without local edits.

    ``left_out`` stays there.
    """

    projects: Sequence[str] = ()
    database: str = ""
    left_out: Sequence[Choice] = ()
    overwrite: bool = False
    by: str = ""
    """The requesting person, unless it is an operator of this machine."""


def move_from(source: Source, wanted: WantedMove, *, write: bool) -> tuple[Installation, Report]:
    """Reads and moves. Raises SourceError without writing anything."""
    with open_database(wanted.database) if wanted.database else nullcontext() as database:
        stored = list_projects(database) if database is not None else ()
        installation = read_installation(source, wanted.projects, stored)
        if database is not None:
            source.begin("Reading the database of the other server")
            add_hidden(installation, database)
        leave_out(installation, wanted.left_out)
        report = move(installation, write=write, overwrite=wanted.overwrite, by=wanted.by, tell=source.begin)
        return installation, report


logger = logging.getLogger(__name__)
BEAT = 1.0  # seconds
KEPT = 20
"""The latest runs."""
Step = InstallationMove.Step
_ONE_AT_A_TIME = "LOCK TABLE importer_installationmove IN SHARE ROW EXCLUSIVE MODE"
"""Locking the latest run would let waiting ones begin beside the next one, and there may be none."""


def begin(run: InstallationMove, source: Source, csv: bytes = b"") -> None:
    """Stores the run and starts it after the commit. Raises Conflict if another is running."""
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
    """Updates the run's sign of life and its progress."""
    try:
        while not done.wait(BEAT):
            doing = f"{source.doing}: " if source.doing else ""
            text = strip_controls(f"{doing}{source.answers:,} answers of the other server so far.")
            InstallationMove.objects.filter(pk=run_id, finished_at=None).update(
                beat_at=timezone.now(), progress=text
            )
    finally:
        connections.close_all()


def work(run: InstallationMove, source: Source, csv: bytes) -> None:
    """Carries out the run and stores its result."""
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


EVENTS = "/api/admin/search/events?limit=100"
OUR_OWN = {"features-exported"}
"""Events that our own reading leaves in the other installation's log."""


class _Event(Shape):
    id: int
    type: str


class _Events(Shape):
    events: list[_Event]


@dataclass(slots=True)
class Round:
    """One look at the other installation. ``report`` is None if nothing has changed there; ``problem`` is
    its failure.
    """

    report: Report | None = None
    proofs: list[TokenProof] = field(default_factory=list)
    problem: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether everything is here, and equal."""
        moved = self.report is None or not (self.report.is_refused or self.report.has_conflicts)
        return not self.problem and moved and all(proof.is_equal for proof in self.proofs)


class Changes:
    """Detects changes there since the last look, to avoid reading everything each time."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._newest: int | None = None

    def look(self) -> bool:
        """Whether something changed. Also true if the log cannot tell."""
        raw: Any = self._source.find(EVENTS)
        events = read_shape(self._source.address, EVENTS, raw, _Events).events if raw is not None else []
        before, self._newest = self._newest, max((event.id for event in events), default=None)
        if before is None or self._newest is None:
            return True
        new = [event for event in events if event.id > before]
        return len(new) == len(events) or any(event.type not in OUR_OWN for event in new)

    def forget(self) -> None:
        """Forgets the result, because it was not moved."""
        self._newest = None


def follow(
    source: Source,
    *,
    move: Callable[[], Report],
    prove: Callable[[], list[TokenProof]],
    every: float,
    stopping: threading.Event,
) -> Iterator[Round]:
    """Yields a round every `every` seconds until `stopping` is set. Completes a round that has begun."""
    changes = Changes(source)
    while not stopping.is_set():
        current = Round()
        try:
            if changes.look():
                current.report = move()
            current.proofs = prove()
        except AppError as error:
            current.problem = error.message
        except OperationalError:  # the next round reconnects
            connection.close()
            current.problem = "The database of this server cannot be reached."
        if not current.is_settled:  # a user may have edited here, which the next round should report
            changes.forget()
        yield current
        pause(stopping, every)


def pause(stopping: threading.Event, seconds: float) -> None:
    stopping.wait(seconds)
