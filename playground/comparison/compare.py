"""Compares two states over the contexts of a table: the number, kind and reasons of different results.

Forecasts flags at a future moment, with a function of the app above that knows scheduled changes.

Payloads of variants: their equality for an application, and their form on pages.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from fractions import Fraction
from itertools import chain, islice, takewhile
from typing import NamedTuple

from flagadmin.core.errors import clip
from flagadmin.core.hook import Hook
from playground.comparison.results import (
    Answer,
    Shares,
    StateResults,
    drop_payloads,
    replace_payloads,
    sort_key,
)
from playground.comparison.table import ContextTable, Mask
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation
from playground.engine.outcomes import State
from playground.engine.reasons import Reasons
from playground.engine.snapshot import Snapshot
from playground.engine.variants import Payload
from projects.history.definitions_at import Changed
from projects.strategies.rules import find_json_fault

MISSING = "The flag does not exist, or is archived"


class Change(Enum):
    """The effect of another state on a flag for a context. The first five change an application's result."""

    OFF_TO_ON = "offToOn"
    ON_TO_OFF = "onToOff"
    VARIANT = "variant"
    PAYLOAD = "payload"
    """The same variant has another payload."""
    SHARE = "share"
    """The result is random in at least one state, and its shares differ."""
    UNKNOWN = "unknown"
    """Only an SDK can tell the result in at least one state, and the flag differs between the states."""
    NONE = "unchanged"

    @property
    def words(self) -> str:
        """The wording after a number of users: ``200 off → on``."""
        return _WORDS[self]


_WORDS = {
    Change.OFF_TO_ON: "off → on",
    Change.ON_TO_OFF: "on → off",
    Change.VARIANT: "another variant",
    Change.PAYLOAD: "another payload",
    Change.SHARE: "another share of calls",
    Change.UNKNOWN: "only an SDK can tell",
    Change.NONE: "unchanged",
}
SWITCHES = (Change.OFF_TO_ON, Change.ON_TO_OFF)
CHANGES = (*SWITCHES, Change.VARIANT, Change.PAYLOAD, Change.SHARE)
COUNTED = (*CHANGES, Change.UNKNOWN)

Pairs = dict[tuple[Shares, Shares], Mask]
"""Contexts by their results before and after."""


@dataclass(frozen=True, slots=True)
class FlagComparison:
    """The results of two states for one flag: the ``contexts`` of each change, and of each pair of results."""

    name: str
    contexts: dict[Change, Mask]
    pairs: Pairs

    def count(self, change: Change) -> int:
        return self.contexts.get(change, 0).bit_count()

    @property
    def changed(self) -> int:
        """The number of contexts whose result certainly changes."""
        return sum(map(self.count, CHANGES))

    @property
    def before(self) -> dict[Answer, Fraction]:
        """The number of contexts with each answer. A context with a random result counts with its shares."""
        return _count_answers(self.pairs, 0)

    @property
    def after(self) -> dict[Answer, Fraction]:
        return _count_answers(self.pairs, 1)

    def among(self, chosen: Mask) -> FlagComparison:
        """The same for some of the contexts."""
        pairs = {pair: both for pair, mask in self.pairs.items() if (both := mask & chosen)}
        contexts = {change: both for change, mask in self.contexts.items() if (both := mask & chosen)}
        return FlagComparison(self.name, contexts, pairs)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one context in one state, and the reason for it."""

    shares: Shares
    reason: str


@dataclass(frozen=True, slots=True)
class Example:
    """A context whose result changes. `position` is its place among the contexts."""

    flag: str
    position: int
    change: Change
    before: Result
    after: Result


class Comparison:
    """Two states and the contexts to compare them for."""

    def __init__(self, before: Snapshot, after: Snapshot, table: ContextTable) -> None:
        self.table = table
        self._before = StateResults(before, table)
        self._after = self._before if after is before else StateResults(after, table)

    def names(self) -> list[str]:
        """The flags of either state, in code-point order."""
        return sorted({*self._before.snapshot.names, *self._after.snapshot.names})

    @property
    def before(self) -> Snapshot:
        return self._before.snapshot

    @property
    def after(self) -> Snapshot:
        return self._after.snapshot

    def list_differing(self) -> list[str]:
        """The flags that differ between the states, including their parents and segments."""
        return [name for name in self.names() if not self.is_same(name)]

    def project(self, name: str) -> str:
        flag = self._before.flag(name) or self._after.flag(name)
        return flag.project if flag else ""

    def flag(self, name: str) -> FlagComparison:
        """Compares one flag. A missing flag counts as off."""
        before, after = self._before.results(name), self._after.results(name)
        same = self.is_same(name)
        contexts: dict[Change, Mask] = defaultdict(int)
        pairs: Pairs = {}
        for old, old_mask in before.items():
            for new, new_mask in after.items():
                if common := old_mask & new_mask:
                    pairs[old, new] = common
                    contexts[Change.NONE if same else find_change(old, new)] |= common
        return FlagComparison(name, dict(contexts), pairs)

    def is_same(self, name: str) -> bool:
        """Whether the flag, with its parents and segments, is the same in both states."""
        return self._parts(self._before, name) == self._parts(self._after, name)

    def _parts(self, state: StateResults, name: str) -> list[object]:
        """Lists everything that affects the result: digests of documents, or objects that both states share."""
        flag = state.flag(name)
        flags = [flag] if flag is None else [flag, *(state.flag(parent.name) for parent in flag.parents)]
        segments = state.snapshot.segments
        used = (s for part in flags if part for strategy in part.strategies for s in strategy.segments)
        return [
            *(part and (part.digest or id(part)) for part in flags),
            *(id(segments[position].conditions) for position in used),
        ]

    def examples(
        self, compared: FlagComparison, limit: int | None, start: int = 0, *, limit_each: int | None = None
    ) -> Iterator[Example]:
        """The first contexts of each change (None: all), at most `limit_each`, with the reasons before and after."""
        changes = chain.from_iterable(
            islice(self._changes(compared, change), limit_each) for change in (*CHANGES, Change.UNKNOWN)
        )
        reasons = (
            FlagReasons(self._before.snapshot, compared.name),
            FlagReasons(self._after.snapshot, compared.name),
        )
        for position, change, old, new in islice(changes, start, limit):
            context = self.table.contexts[position]
            before, after = (flag_reasons.of(context) for flag_reasons in reasons)
            yield Example(compared.name, position, change, Result(old, before), Result(new, after))

    def _changes(
        self, compared: FlagComparison, change: Change
    ) -> Iterator[tuple[int, Change, Shares, Shares]]:
        mask = compared.contexts.get(change, 0)
        if not mask:
            return
        pairs = [(pair, common) for pair, both in compared.pairs.items() if (common := both & mask)]
        for position in self.table.positions(mask):
            (old, new), _ = next(pair for pair in pairs if pair[1] >> (8 * position) & 1)
            yield position, change, old, new


class FlagReasons:
    """The reasons for the results of one flag in one state."""

    def __init__(self, snapshot: Snapshot, name: str) -> None:
        self._snapshot = snapshot.only(name)
        self._name = name

    def of(self, context: Context) -> str:
        # A drawn bucket is the first, so that a random result gets the reason why it can be on.
        evaluation = Evaluation(self._snapshot, context, lambda: 0.0)
        if self._name not in self._snapshot.positions:
            return MISSING
        return Reasons(evaluation).flag(*evaluation.pair(self._name))


def find_change(before: Shares, after: Shares) -> Change:
    """Finds how a result changes from one state to another."""
    if any(answer.state is State.UNKNOWN for answer, _ in (*before, *after)):
        return Change.UNKNOWN
    if before == after or normalize_payloads(before) == normalize_payloads(after):
        return Change.NONE
    before, after = drop_payloads(before), drop_payloads(after)
    if before == after:
        return Change.PAYLOAD
    if len(before) > 1 or len(after) > 1:
        return Change.SHARE
    [(old, _)], [(new, _)] = before, after
    if old.state is new.state:
        return Change.VARIANT
    return Change.OFF_TO_ON if new.state is State.ON else Change.ON_TO_OFF


def _count_answers(pairs: Pairs, side: int) -> dict[Answer, Fraction]:
    """The contexts by their answers in one of the two states."""
    contexts: dict[Shares, int] = defaultdict(int)
    for pair, mask in pairs.items():
        contexts[pair[side]] += mask.bit_count()
    counts: dict[Answer, Fraction] = defaultdict(Fraction)
    for shares, number in contexts.items():
        for answer, share in shares:
            counts[answer] += share * number
    return dict(sorted(counts.items(), key=lambda item: sort_key(item[0])))


class Forecast(NamedTuple):
    """The future differences in an environment, and a sentence about each change until then."""

    changed: Changed
    notes: Sequence[str] = ()


forecast: Hook[[Collection[str], str, datetime], Forecast] = Hook(
    "playground.comparison.compare.forecast",
    lambda projects, environment, at: Forecast(Changed(frozenset(), [], {}, frozenset())),
)
"""For projects, an environment and a moment. It only reads."""


MAX_SHOWN = 60
"""Characters of a payload on a page."""
_STRING_OR_SPACE = re.compile(r'("(?:\\.|[^"\\])*")|[ \t\n\r]+')


def normalize_payload(payload: Payload) -> Payload:
    """A normal form, equal for equivalent payloads: JSON without white space between its tokens.

    Everything else matters to the application: the type, the order of members, 1.0 instead of 1.
    """
    kind, value = payload
    if kind != "json" or find_json_fault(value):
        return payload
    return kind, _STRING_OR_SPACE.sub(r"\1", value)


def is_same_payload(first: Payload, second: Payload | None) -> bool:
    return first == second or (second is not None and normalize_payload(first) == normalize_payload(second))


def normalize_payloads(shares: Shares) -> Shares:
    return replace_payloads(shares, normalize_payload)


def describe_payload(payload: Payload | None) -> str:
    """`number 900`, truncated if it is long."""
    return clip(_format_payload(payload), MAX_SHOWN)


def describe_difference(before: Shares, after: Shares) -> tuple[str, str]:
    """The payloads of both sides; of long ones, the differing part."""
    texts = [", ".join(_format_payload(answer.payload) for answer, _ in shares) for shares in (before, after)]
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
    start = max(0, alike - MAX_SHOWN // 2)
    if start and max(map(len, texts)) > MAX_SHOWN:
        texts = [f"…{text[start:]}" for text in texts]
    old, new = (clip(text, MAX_SHOWN) for text in texts)
    return old, new


def _format_payload(payload: Payload | None) -> str:
    return "no payload" if payload is None else " ".join(payload).strip()
