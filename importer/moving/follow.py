"""Repeatedly moves the changes in another installation, and proves each move."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db import OperationalError, connection

from flagadmin.core.errors import AppError
from importer.moving.proving.answers import TokenProof
from importer.moving.reading.shapes import Shape, read_shape
from importer.moving.reading.source import Source
from importer.moving.report import Report

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
