"""All that flags have been in an environment, compiled: one state from each moment at which it changed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import Max
from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.statements import fetch_row
from flagadmin.core.errors import NotFound, ValidationError
from groups.access import Caller
from playground.comparison.states import compile_definitions
from playground.engine.snapshot import Snapshot
from playground.outcomes.table import TooLarge
from playground.queries import read_known_revisions
from playground.request import PlaygroundRequest
from projects.definitions import Definitions
from projects.history.queries import find_events
from projects.history.timeline import read_timeline
from projects.models import Flag, Project
from projects.models.versions import BEGINNING, NEVER

MAX_FLAGS = 20
NO_FLAG = Definitions([], {})


@dataclass(frozen=True, slots=True)
class FlagHistory:
    """The states of a flag, each from its moment on. Before the first there was no flag.

    A snapshot is None while the flag was in a project that the caller may not read, and before its first version if
    it may have existed before. ``changes`` are the ids of the audit events, "" for a change that left none.
    """

    name: str
    moments: list[datetime]
    snapshots: list[Snapshot | None]
    changes: list[str]

    def count_states_at(self, time: datetime) -> int:
        """The number of states that had begun. 0: there was no flag yet."""
        return bisect_right(self.moments, time)


def read_now() -> datetime:
    """The later of this server's clock and the database's, from which changes have their times."""
    return max(timezone.now(), fetch_row("SELECT clock_timestamp()")[0])


class Sight(NamedTuple):
    """The projects whose flags may be read. Only admins see those of projects that have been deleted."""

    projects: frozenset[str]
    with_deleted: bool

    @classmethod
    def of(cls, caller: Caller, environment: str) -> Sight:
        """All that the caller may read. Raises ValidationError for an unknown environment."""
        query = PlaygroundRequest([environment], None, {}, {})
        current = read_known_revisions(caller, query, {"environment": environment})
        return cls(frozenset(current), caller.is_admin)


def read_histories(
    sight: Sight,
    environment: str,
    flags: Sequence[str],
    *,
    max_changes: int | None = None,
) -> list[FlagHistory]:
    """The histories of these flags. Two queries for each flag, and a few for all.

    Raises TooLarge for more than ``max_changes`` of the flags together; NotFound for a flag that could never have been
    read.
    """
    if len(flags) > MAX_FLAGS:
        raise ValidationError.at("flag", f"must name at most {MAX_FLAGS} flags, not {len(flags)}")
    reader = _Reader(sight, environment, max_changes)
    return [reader.read(name, f"flag[{place}]") for place, name in enumerate(flags)]


class Window(NamedTuple):
    """Changes after ``since``, until ``until``."""

    since: datetime
    until: datetime


def read_changes(
    sight: Sight, environment: str, names: Iterable[str], window: Window, *, max_changes: int
) -> list[FlagHistory]:
    """The histories of those of these flags that could be read, from the window's beginning on, which must be known. A
    first state at that moment is the one before all changes. Raises TooLarge.
    """
    reader, histories = _Reader(sight, environment, max_changes, window), []
    for name in names:
        with suppress(NotFound):
            histories.append(reader.read(name, "from"))
    return histories


class _Reader:
    def __init__(
        self, sight: Sight, environment: str, max_changes: int | None, window: Window | None = None
    ) -> None:
        self._max_changes, self._changes, self._window = max_changes, 0, window
        self._sight, self._environment = sight, environment
        deleted = AuditEvent.objects.filter(type=EventType.PROJECT_DELETED.value).order_by()
        self._deleted = dict(deleted.values_list("project").annotate(Max("created_at")))
        self._projects = {*Project.objects.values_list("pk", flat=True), *filter(None, self._deleted)}

    def _may_read(self, project: str, moment: datetime) -> bool:
        """Whether the caller sees a project's flags of a moment. Only admins see those of one deleted since."""
        if self._sight.with_deleted:
            return True
        deleted = self._deleted.get(project)
        return project in self._sight.projects and (deleted is None or deleted <= moment)

    def _check_changes(self, name: str, path: str, changes: int) -> None:
        """Each change costs memory and time, so the limit holds for all flags together.

        The number of changes tells nothing of a flag that the caller may not read.
        """
        if self._max_changes is None or self._changes + changes <= self._max_changes:
            return
        if not Flag.objects.filter(name=name, project__in=self._sight.projects).exists():
            raise self._not_found(name, path)
        together = f", and the flags before it {self._changes:,} times" if self._changes else ""
        message = f"{name[:100]} has changed {changes:,} times{together}; at most {self._max_changes:,}. "
        message += "The command flagadmin assignments on the server has no such limit"
        raise TooLarge.at(path, message)

    def read(self, name: str, path: str) -> FlagHistory:
        since, until = self._window or (BEGINNING, NEVER)
        timeline = read_timeline([name], environment=self._environment, since=since)
        moments = timeline.list_moments()
        if self._window:
            moments = [since, *(moment for moment in moments if since < moment <= until)]
        self._check_changes(name, path, len(moments))
        self._changes += len(moments)
        states = [(at, timeline.read_definitions([name], self._environment, at)) for at in moments]
        shown_states = [(at, self._show(name, read, at)) for at, read in states]
        if not any(shown is not None and shown.flags for _, shown in shown_states):
            raise self._not_found(name, path)
        if timeline.since > since:
            shown_states = [(BEGINNING, None), *shown_states]
        kept = list(_drop_repeated(shown_states))
        visible = [shown for _, shown in kept if shown is not None]
        compiled = iter(compile_definitions(self._environment, visible[0], *visible[1:]))
        moments = [moment for moment, _ in kept]
        events = find_events(moments, timeline.names)
        return FlagHistory(
            name,
            moments,
            [None if shown is None else next(compiled) for _, shown in kept],
            [str(events.get(moment, "")) for moment in moments],
        )

    def _not_found(self, name: str, path: str) -> NotFound:
        return NotFound(f"{path}: flag {name[:100]} not found in environment {self._environment}.")

    def _show(self, name: str, read: Definitions, moment: datetime) -> Definitions | None:
        """What the caller may see of the flag; None if it is there and they may not."""
        flag = read.by_name().get(name)
        if flag is None:
            return NO_FLAG
        if not self._may_read(flag["project"], moment):
            return None
        return Definitions.of(
            (each for each in read.flags if self._may_read(each["project"], moment)), read.segments
        )


def _drop_repeated(
    states: Iterable[tuple[datetime, Definitions | None]],
) -> Iterator[tuple[datetime, Definitions | None]]:
    earlier: Definitions | None = NO_FLAG
    for moment, state in states:
        if state != earlier:
            yield moment, state
        earlier = state
