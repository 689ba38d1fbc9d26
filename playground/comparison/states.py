"""States of the flags that can be compared: stored now, stored earlier, or hypothetical.

A state is the stored flags of an environment with some of them replaced. Each kind is a subclass of `State`, in its own
app; `kinds` defines its name in requests. Comparisons do not know the kinds.

The kinds of states that requests and pages can name. Apps add them in ``AppConfig.ready``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, ClassVar, NamedTuple

from django.utils.functional import cached_property
from rest_framework.serializers import Field

from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.errors import Conflict, NotFound, Problem, ValidationError
from flagadmin.core.hook import load_added
from groups.access import Caller
from playground.engine.compilation import compile_snapshot, recompile
from playground.engine.snapshot import Snapshot
from playground.models import SavedContext
from playground.snapshot_cache import load_snapshot_at
from projects.definitions import Definitions, find_parents, read_definitions

Revisions = Mapping[str, int]
"""The compared projects, with their just-read revisions."""


class Scope(NamedTuple):
    """The ``projects`` that the caller may compare; ``then`` are those at the state's past moment."""

    projects: Revisions
    then: frozenset[str] = frozenset()


@dataclass(frozen=True)
class State(ABC):
    """The flags of an environment in some state.

    Made in two steps: a request names it, then it is limited `within` the compared projects. A request with several
    states first checks for all of them whether their environments exist.

    `saved_contexts` are the stored ones that this state changes, in their new form, by name. `url` is the page that
    explains one context's result here; "" if the playground does.
    """

    environment: str
    saved_contexts: Mapping[str, SavedContext] = field(default_factory=dict, kw_only=True)
    url: str = field(default="", kw_only=True)

    can_read_few: ClassVar[bool] = False
    """Whether `read_few` works."""

    @property
    def at(self) -> datetime | None:
        """The past moment of these flags, if any."""
        return None

    def notes(self) -> Sequence[str]:
        """Sentences that the user should know about this state."""
        return ()

    def problems(self, path: str, scope: Scope) -> Iterator[Problem]:
        """Yields the reasons why this state cannot be compared there. ``path`` is its member of the request's body."""
        return iter(())

    def within(self, scope: Scope, path: str) -> State:
        """This state, read in full. Raises ValidationError with all its problems."""
        return self

    def prepare(self, stored: StoredFlags) -> None:  # noqa: B027  # most states need nothing
        """Called before any state is compiled: declares the stored definitions that `compile` needs."""

    @abstractmethod
    def compile(self, stored: StoredFlags) -> Snapshot:
        """All flags in this state. Shares unchanged ones with ``stored``."""

    @property
    def used_segments(self) -> Collection[int]:
        """Ids of segments that `apply` needs, even if no stored flag uses them."""
        return ()

    @abstractmethod
    def apply(self, stored: Definitions, names: Collection[str]) -> Definitions:
        """The definitions of these flags in this state, based on those ``stored`` under the same names."""

    def read_few(self, projects: Revisions, names: Collection[str]) -> Definitions:
        """A few flags with their parents, without compiling all others."""
        raise NotImplementedError


@dataclass(frozen=True)
class Stored(State):
    """The present stored state."""

    can_read_few = True

    def prepare(self, stored: StoredFlags) -> None:
        stored.compile()

    def compile(self, stored: StoredFlags) -> Snapshot:
        return stored.snapshot

    def apply(self, stored: Definitions, names: Collection[str]) -> Definitions:
        return stored

    def read_few(self, projects: Revisions, names: Collection[str]) -> Definitions:
        with consistent_reads():
            read = read_definitions(projects, self.environment, flags=names)
            parents = find_parents(read.flags)
            if parents <= set(names):
                return read
            return read_definitions(projects, self.environment, flags=parents.union(names))


class StoredFlags:
    """The stored flags of an environment, compiled when the first state needs them."""

    def __init__(self, projects: Revisions, environment: str) -> None:
        self.projects = projects
        self.environment = environment
        self._needed: set[str] = set()
        self._segments: set[int] = set()

    def compile(self) -> Snapshot:
        """The snapshot of the revisions that were read, perhaps older than `definitions`."""
        return self._cached

    @cached_property
    def _cached(self) -> Snapshot:
        return load_snapshot_at(self.projects, self.environment).snapshot

    def need(self, names: Collection[str], segments: Iterable[int]) -> None:
        """Makes `definitions` read these flags and segments."""
        self._needed.update(names)
        self._segments.update(segments)

    @cached_property
    def definitions(self) -> Definitions:
        """The flags and segments that states need."""
        if not (self._needed or self._segments):
            return Definitions([], {})
        return read_definitions(self.projects, self.environment, flags=self._needed, segments=self._segments)

    @cached_property
    def snapshot(self) -> Snapshot:
        """The snapshot, with the flags in `definitions` replaced by their definitions there, in case they have
        changed since.
        """
        return self._replace(self._cached, self._needed, self.definitions) if self._needed else self._cached

    def replace(self, names: Collection[str], by: Definitions) -> Snapshot:
        """The snapshot with other definitions of these flags. Removes flags without a definition."""
        return self._replace(self.snapshot, names, by)

    def _replace(self, snapshot: Snapshot, names: Collection[str], by: Definitions) -> Snapshot:
        return recompile(
            by.flags,
            by.segments,
            environment=self.environment,
            earlier=snapshot,
            unchanged=snapshot.sizes,
            replaced=names,
        ).snapshot


def compile_states(projects: Revisions, states: Sequence[State]) -> list[Snapshot]:
    """The snapshots of states. States of one environment share all equal flags."""
    stored = {name: StoredFlags(projects, name) for name in {state.environment for state in states}}
    for state in states:
        state.prepare(stored[state.environment])
    return [state.compile(stored[state.environment]) for state in states]


def read_states(projects: Revisions, states: Iterable[State], names: Collection[str]) -> list[Definitions]:
    """The definitions of these flags in states, with the segments they use. Six statements for each environment."""
    states = list(states)
    stored = {}
    for environment in {state.environment for state in states}:
        used = {key for state in states if state.environment == environment for key in state.used_segments}
        stored[environment] = read_definitions(projects, environment, flags=names, segments=used)
    return [state.apply(stored[state.environment], names) for state in states]


def compile_definitions(environment: str, first: Definitions, *others: Definitions) -> list[Snapshot]:
    """Compiles a few flags of an environment in some states. Shares parts with the first one if they are equal."""
    before = compile_snapshot(first.flags, first.segments, environment=environment)
    return [
        before,
        *(
            before
            if other == first
            else recompile(other.flags, other.segments, environment=environment, earlier=before).snapshot
            for other in others
        ),
    ]


def find_users(snapshot: Snapshot, segments: Iterable[int]) -> set[str]:
    """The names of the flags that use any of these segments."""
    ids = {str(segment) for segment in segments}
    places = {position for position, segment in enumerate(snapshot.segments) if segment.id in ids}
    if not places:
        return set()
    return {
        flag.name
        for flag in snapshot.flags
        if any(places.intersection(strategy.segments) for strategy in flag.strategies)
    }


def add_children(names: Iterable[str], snapshots: Iterable[Snapshot]) -> set[str]:
    """The flags, and those that depend on any of them in a state."""
    among = set(names)
    children = {
        flag.name
        for snapshot in snapshots
        for flag in snapshot.flags
        if any(parent.name in among for parent in flag.parents)
    }
    return among | children


class StatePair:
    """Two compiled states of the same projects.

    ``before`` and ``after`` are the snapshots. With ``few`` they contain only these flags and their parents, which is
    faster for past moments; both states must then support it.
    """

    def __init__(
        self, projects: Revisions, before: State, after: State, *, few: Collection[str] = ()
    ) -> None:
        self.projects = projects
        self.states = before, after
        self._read = [state.read_few(projects, few) for state in self.states] if few else None
        if self._read is None:
            self.before, self.after = compile_states(projects, self.states)
        elif before.environment == after.environment:
            self.before, self.after = compile_definitions(before.environment, *self._read)
        else:
            self.before, self.after = (
                compile_snapshot(read.flags, read.segments, environment=state.environment)
                for state, read in zip(self.states, self._read, strict=True)
            )

    @property
    def snapshots(self) -> tuple[Snapshot, Snapshot]:
        return self.before, self.after

    def read(self, names: Iterable[str]) -> list[Definitions]:
        """The definitions of these flags and of their parents, before and after."""
        if self._read is not None:
            return self._read
        names = set(names)
        return read_states(self.projects, self.states, names | self._find_parents(names))

    def _find_parents(self, names: Collection[str]) -> set[str]:
        return {
            parent.name
            for snapshot in self.snapshots
            for name in names
            if name in snapshot.positions
            for parent in snapshot.flags[snapshot.positions[name]].parents
        }


Body = Mapping[str, Any]
"""A state in the body of a request, validated."""
Choice = tuple[str, str]
"""The value that a page sends, and its label."""


def _offer_none(caller: Caller) -> list[Choice]:
    return []


@dataclass(frozen=True, slots=True)
class StateKind:
    """A kind of states, named by a ``member`` of the body.

    ``make_field`` returns the serializer field of the member. ``read`` returns the state; it raises NotFound or
    Conflict if the named object does not exist (any more). A kind with ``names_environment`` stands alone in the
    body; ``not_beside`` are further excluded members, with the reason. ``choices`` are values that pages offer in
    place of an environment, under the heading ``title``.
    """

    member: str
    make_field: Callable[[], Field[Any, Any, Any, Any]]
    read: Callable[[Caller, Body], State]
    names_environment: bool = False
    not_beside: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    choices: Callable[[Caller], list[Choice]] = _offer_none


@cache
def _load_kinds() -> dict[str, StateKind]:
    return {kind.member: kind for kind in load_added("playground.comparison.states")}


def list_kinds() -> Iterable[StateKind]:
    """Lists the kinds in the order in which they were registered."""
    return _load_kinds().values()


def read_state(caller: Caller, body: Body, path: str) -> State:
    """The state named in a validated body, before it is limited `within` anything. Raises ValidationError."""
    for kind in list_kinds():
        if kind.member in body:
            try:
                return kind.read(caller, body)
            except (NotFound, Conflict) as error:
                raise ValidationError.at(f"{path}.{kind.member}", error.message) from None
    return Stored(body["environment"])


def list_state_choices(caller: Caller) -> list[tuple[str, list[Choice]]]:
    """The states that pages offer besides environments, by heading: for example `import:` with an import's id."""
    offered = ((kind, kind.choices(caller)) for kind in list_kinds())
    return [
        (kind.title, [(f"{kind.member}:{value}", label) for value, label in choices])
        for kind, choices in offered
        if choices
    ]


def split_choice(chosen: str) -> tuple[str, str]:
    """Splits a choice into the body's member and value: an environment, or one of `list_state_choices`."""
    member, colon, value = chosen.partition(":")
    return (member, value) if colon and member in _load_kinds() else ("environment", chosen)
