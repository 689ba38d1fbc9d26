"""Prepares a snapshot for answering contexts: with the first answer, and dropped with the snapshot."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import orjson

from playground.engine.active import ActiveFlags
from playground.engine.context import Context
from playground.engine.snapshot import Snapshot
from playground.response.snapshot import ResponseSnapshot
from sdk.evaluation.dates_reached import find_dates_reached

FORMAT = 3  # of answers; another makes all ETags new


class Answer(NamedTuple):
    """``body`` is None if the client has it already; ``etag`` is empty for answers without one."""

    etag: str
    body: bytes | None
    is_lasting: bool = False
    """Whether the flags and the context alone decide the ETag: the same question has the same one again."""


class Prepared:
    """A snapshot of `revisions`, by project, and what its answers are made of."""

    def __init__(self, compiled: ResponseSnapshot, revisions: Mapping[str, int]) -> None:
        # Not the whole, which would then never be freed: this is kept for as long as that lives.
        self.snapshot, self.flags, self._toggles = compiled.snapshot, compiled.flags, compiled.toggles
        versions = FORMAT, compiled.snapshot.environment, sorted(revisions.items())
        self._only: dict[str, Snapshot] = {}
        self.written: dict[Hashable, tuple[bytes, bytes]] = {}
        """The unchanging parts of OFREP's answers, by how a flag was decided. Written when first needed."""
        self.state = hashlib.blake2b(orjson.dumps(versions), digest_size=16).hexdigest()

    @property
    def toggles(self) -> ActiveFlags[bytes]:
        """The flags for frontend SDKs, compiled the first time."""
        return self._toggles.flags

    @property
    def has_toggles(self) -> bool:
        """Whether `toggles` have been compiled already."""
        return self._toggles.are_compiled

    @property
    def has_batch(self) -> bool:
        """Whether the flags have been evaluated all together already."""
        return "batch" in self.snapshot.__dict__

    @cached_property
    def is_timeless(self) -> bool:
        """Whether no answer depends on the time."""
        return not self.snapshot.clock and "currentTime" not in self._fields

    @cached_property
    def looks_at_address(self) -> bool:
        return "remoteAddress" in self._fields

    def only(self, name: str) -> Snapshot:
        """The part of the snapshot that this flag of it needs."""
        part = self._only.get(name)
        if part is None:
            part = self._only[name] = self.snapshot.only(name)
        return part

    @cached_property
    def _fields(self) -> frozenset[str]:
        """The fields that the flags look at. OpenFeature's answers say whether there is a userId."""
        return self.snapshot.compared_fields | self.snapshot.exact_fields | {"userId"}

    def digest(self, context: Context, *more: object) -> str:
        """A digest of what decides an answer: the flags, what they look at in the context (which has its
        currentTime), and `more`. No flag is evaluated for it, and every worker finds the same."""
        snapshot, fields = self.snapshot, self._fields
        values = [item for item in context.values.items() if item[0] in fields]
        if "currentTime" in fields - snapshot.exact_fields and "currentTime" not in context.fields:
            values.remove(("currentTime", context.values["currentTime"]))
        values.sort()
        made_from = (self.state, values, find_dates_reached(snapshot, context), more)
        return hashlib.blake2b(orjson.dumps(made_from), digest_size=16).hexdigest()


_prepared: WeakKeyDictionary[ResponseSnapshot, Prepared] = WeakKeyDictionary()


def prepare(compiled: ResponseSnapshot, revisions: Mapping[str, int]) -> Prepared:
    """Returns the prepared snapshot, which was compiled at these revisions."""
    prepared = _prepared.get(compiled)
    if prepared is None:
        prepared = _prepared[compiled] = Prepared(compiled, revisions)
    return prepared
