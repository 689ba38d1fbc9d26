"""Prepares a snapshot for answering contexts, and remembers answers, bounded in bytes.

A snapshot is prepared with the first answer, and dropped with the snapshot.

Answers frontend SDKs: reads their context, and finds the result, from memory if nothing has changed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Hashable, Mapping
from datetime import datetime
from functools import cached_property
from random import random
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import orjson

from flagadmin.core.errors import NotFound, Problem, ValidationError
from flagadmin.core.http.request_headers import is_listed
from playground.context_body import read_context
from playground.engine.active import ActiveFlags, Found
from playground.engine.context import TOP_LEVEL, Context, format_time
from playground.engine.evaluator import Evaluation
from playground.engine.snapshot import Snapshot
from playground.evaluation_metrics import EVALUATIONS
from playground.response.frontend import render_toggle, render_toggles
from playground.response.snapshot import ResponseSnapshot

FORMAT = 3  # of answers; a new number changes all ETags


class Answer(NamedTuple):
    """``body`` is None if the client already has it; ``etag`` is empty for answers without one."""

    etag: str
    body: bytes | None
    is_lasting: bool = False
    """Whether the ETag depends only on the flags and the context, so that it recurs for the same question."""


class Prepared:
    """A snapshot at `revisions`, by project, with the parts of its answers."""

    def __init__(self, compiled: ResponseSnapshot, revisions: Mapping[str, int]) -> None:
        # Not the whole object, which would then never be freed: this lives as long as that does.
        self.snapshot, self.flags, self._toggles = compiled.snapshot, compiled.flags, compiled.toggles
        versions = FORMAT, compiled.snapshot.environment, sorted(revisions.items())
        self._only: dict[str, Snapshot] = {}
        self.written: dict[Hashable, Any] = {}
        """What OFREP's answers are written with."""
        self._scope = compiled.snapshot.environment, tuple(sorted(revisions))
        self.state = hashlib.blake2b(orjson.dumps(versions), digest_size=16).hexdigest()

    @property
    def toggles(self) -> ActiveFlags[bytes]:
        """The flags for frontend SDKs, compiled on first use."""
        return self._toggles.flags

    @property
    def has_toggles(self) -> bool:
        """Whether `toggles` have been compiled already."""
        return self._toggles.are_compiled

    @property
    def has_batch(self) -> bool:
        """Whether all flags have already been evaluated together."""
        return "batch" in self.snapshot.__dict__

    @cached_property
    def is_timeless(self) -> bool:
        """Whether no answer depends on the time."""
        return not self.snapshot.clock and "currentTime" not in self._fields

    @cached_property
    def looks_at_address(self) -> bool:
        return "remoteAddress" in self._fields

    def only(self, name: str) -> Snapshot:
        """The part of the snapshot that this flag needs."""
        part = self._only.get(name)
        if part is None:
            part = self._only[name] = self.snapshot.only(name)
        return part

    @cached_property
    def _fields(self) -> frozenset[str]:
        """The fields that the flags use. OpenFeature's answers depend on whether there is a userId."""
        return self.snapshot.compared_fields | self.snapshot.exact_fields | {"userId"}

    def digest(self, context: Context, *more: object) -> str:
        """A digest of everything that determines an answer: the flags, the fields of the context (which has its
        currentTime) that they use, and `more`. It needs no evaluation, and is the same on every worker.
        """
        made_from = (self.state, *self._read(context), more)
        return hashlib.blake2b(orjson.dumps(made_from), digest_size=16).hexdigest()

    def place(self, context: Context) -> Hashable:
        """Everything that determines an answer, besides the revisions: the same for the next snapshot."""
        values, reached = self._read(context)
        return self._scope, *values, *reached

    def _read(self, context: Context) -> tuple[list[tuple[str, str]], list[tuple[str, bool]]]:
        """The fields of a context that the flags use, and the dates that have been reached."""
        snapshot, fields = self.snapshot, self._fields
        values = [item for item in context.values.items() if item[0] in fields]
        if "currentTime" in fields - snapshot.exact_fields and "currentTime" not in context.fields:
            values.remove(("currentTime", context.values["currentTime"]))
        return sorted(values), find_dates_reached(snapshot, context)


_prepared: WeakKeyDictionary[ResponseSnapshot, Prepared] = WeakKeyDictionary()


def prepare(compiled: ResponseSnapshot, revisions: Mapping[str, int]) -> Prepared:
    """The prepared snapshot, compiled at these revisions."""
    prepared = _prepared.get(compiled)
    if prepared is None:
        prepared = _prepared[compiled] = Prepared(compiled, revisions)
    return prepared


K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

LIMIT = 32_000_000  # bytes in a process
ENTRY = 300  # bytes of an entry besides its value: two strings and their places. Measured


class Remembered(Generic[K, T]):
    """Values by key. When the younger half of the memory is full, the older half is dropped as a whole.

    A used value moves to the younger half and so stays, without any sorting. Thread-safe.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit // 2
        self._younger: dict[K, tuple[T, int]] = {}  # with their sizes
        self._older: dict[K, tuple[T, int]] = {}
        self._nbytes = 0  # of the younger half
        self._changing = Lock()

    def get(self, key: K) -> T | None:
        kept = self._younger.get(key)
        if kept is None:
            if key not in self._older:
                return None
            with self._changing:
                kept = self._younger.get(key) or self._older.pop(key, None)
                if kept is None:
                    return None
                self._add(key, kept)
        return kept[0]

    def get_all(self, keys: Collection[K | None]) -> list[T | None]:
        """The value of each key, of which most are in use; None for None."""
        younger: dict[Any, tuple[T, int]] = self._younger
        found = zip(keys, map(younger.get, keys), strict=True)
        return [kept[0] if kept else None if key is None else self.get(key) for key, kept in found]

    def put(self, key: K, value: T, nbytes: int) -> None:
        """Adds a value of this size. A value larger than half the limit is not kept."""
        if nbytes + ENTRY <= self._limit:
            with self._changing:
                self._add(key, (value, nbytes + ENTRY))

    def _add(self, key: K, kept: tuple[T, int]) -> None:
        replaced = self._younger.pop(key, None)
        self._nbytes -= replaced[1] if replaced else 0
        if self._nbytes + kept[1] > self._limit:
            self._older, self._younger, self._nbytes = self._younger, {}, 0
        self._younger[key] = kept
        self._nbytes += kept[1]

    def clear(self) -> None:
        with self._changing:
            self._younger, self._older, self._nbytes = {}, {}, 0


class Chance:
    """A source of random numbers in [0, 1)."""

    __slots__ = ("was_used",)

    def __init__(self) -> None:
        self.was_used = False

    def __call__(self) -> float:
        self.was_used = True
        return random()


def make_context(fields: Mapping[str, Any], *, environment: str, address: str, now: datetime) -> Context:
    """The context to evaluate. Its environment is the token's, regardless of the client. ``fields`` and their
    properties are strings.
    """
    document = {"remoteAddress": address, "appName": "", **fields, "environment": environment}
    return Context.of_strings(document, now=format_time(now))


def find_dates_reached(snapshot: Snapshot, context: Context) -> list[tuple[str, bool]]:
    """The results of all conditions on the current time, which the context has: they change even if the flags do
    not.

    Equal for equal flags in every worker, regardless of the source of its snapshot.
    """
    if not snapshot.clock:
        return []
    values = snapshot.columns.values_on_demand(context)
    return sorted(
        {(constraint.unmet, constraint.test(values[constraint.column])) for constraint in snapshot.clock}
    )


POINTER = 8  # bytes

remembered: Remembered[str, list[bytes]] = Remembered()
_found: Remembered[Hashable, Found[bytes]] = Remembered(LIMIT // 2)
"""What a context got last, so that only the flags that have changed since are evaluated."""
_evaluated = EVALUATIONS.labels("frontend")
_PROPERTY = re.compile(r"properties\[(.+)\]")


def answer_toggles(
    prepared: Prepared, context: Context, known: str, *, may_evaluate: bool = True
) -> Answer | None:
    """The flags for the context, which has its currentTime. ``known`` is the client's If-None-Match, or empty.

    The ETag depends on the flags and the context, so that a client with the answer needs no evaluation. For a random
    result it depends on the answer, because the next one may differ. None if an evaluation is needed but not allowed.
    """
    etag = f'W/"{prepared.digest(context)}"'
    if is_listed(known, etag):
        return Answer(etag, None, is_lasting=True)
    toggles = remembered.get(etag)
    if toggles is None:
        if not may_evaluate:
            return None
        chance = Chance()
        place = prepared.place(context)
        found = prepared.toggles.find(context, chance, _found.get(place))
        toggles = found.active
        _evaluated.inc(len(prepared.flags))
        if chance.was_used:
            return _answer_drawn(render_toggles(toggles), known)
        remembered.put(etag, toggles, POINTER * len(toggles))
        _found.put(place, found, POINTER * len(found.pieces))
    return Answer(etag, render_toggles(toggles), is_lasting=True)


def answer_toggle(prepared: Prepared, name: str, context: Context) -> Answer:
    """One flag for a context, on or off. Raises NotFound."""
    position = prepared.snapshot.positions.get(name)
    if position is None:
        raise NotFound(f"Could not find feature flag {name}")
    _, outcome = Evaluation(prepared.only(name), context, random).pair(name)
    _evaluated.inc()
    return Answer("", render_toggle(name, prepared.flags[position], outcome))


def recall_toggles(etag: str) -> bytes | None:
    """The remembered answer with this ETag, if any."""
    toggles = remembered.get(etag)
    return None if toggles is None else render_toggles(toggles)


def _answer_drawn(body: bytes, known: str) -> Answer:
    etag = f'W/"{hashlib.blake2b(body, digest_size=8).hexdigest()}"'
    return Answer(etag, None if is_listed(known, etag) else body)


def read_query_context(parameters: Mapping[str, str]) -> dict[str, Any]:
    """``userId=7&properties[country]=NO``. Any other parameter is a property too, and overrides ``properties[...]``."""
    context: dict[str, Any] = {}
    properties: dict[str, str] = {}
    plain: dict[str, str] = {}
    for name, value in parameters.items():
        if name in TOP_LEVEL:
            context[name] = value
        elif match := _PROPERTY.fullmatch(name):
            properties[match[1]] = value
        else:
            plain[name] = value
    return context | {"properties": properties | plain}


def read_body_context(body: Any) -> dict[str, Any]:
    """Reads the context from a body. A missing body or context counts as empty. Raises ValidationError."""
    if not isinstance(body, dict):
        raise ValidationError("The body must be an object.")
    problems: list[Problem] = []
    context = read_context({"context": body.get("context") or {}}, problems)
    if problems:
        raise ValidationError.of(problems)
    return context
