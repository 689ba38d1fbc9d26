"""The order of the fragments in a whole answer, and the slots for values that depend on the context.

Documents of ``orjson.Fragment`` in place of slots take 17 ms for 1,000 flags instead of 6.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from copy import copy
from itertools import compress, count
from operator import ne

from playground.engine.flags import CompiledFlag
from playground.engine.strategies import CompiledStrategy
from playground.response.fragments import FALSE, TRUE, Cuts, FlagFragments, StrategyFragments, write_results

ON, OFF, DISABLED = (
    b'},{"isEnabled":%b,"isEnabledInCurrentEnvironment":%b' % (on, enabled)
    + b',"hasUnsatisfiedDependency":false,"variant":'
    for on, enabled in ((TRUE, TRUE), (FALSE, TRUE), (FALSE, FALSE))
)
"""The head of a flag, none of whose parents is unmet. One that is disabled in the environment is never on."""
BETWEEN = 2
"""Bytes at the beginning of a head: they end the flag before, and are no part of the first one's."""
OFF_VARIANT = b'{"name":"disabled","enabled":false,"feature_enabled":false'

# Slots of a flag, counted from its first one ...
VARIANT, VARIANTS = 1, 2
# ... and back from the first one of the next.
RESULT, REASON = 2, 1


class Layout:
    """The fragments of an answer in their order, with slots for what depends on the context.

    A flag begins with its head, the variant an application gets, and the list that one is from; it ends with its
    result and the reason. A strategy has slots for its verdict, the variant it picks, its constraints with their
    results, its segments, and the end that begins with its bucket.
    """

    def __init__(self, flags: Iterable[tuple[CompiledFlag, FlagFragments]]) -> None:
        self.starts, self.ends = array("I"), array("I")
        """The first slot of each flag, and that of the next flag."""
        self.verdicts = array("I")
        """The slot of each strategy's verdict."""
        self.first = array("I")
        """The position of each flag's first strategy."""
        self.variants = array("I")
        """The slot of the variant that each strategy picks, followed by the list it is from; 0 if it has none."""
        self.picks: list[tuple[bytes, ...]] = []
        """The choices of each strategy."""
        self.buckets: dict[str, tuple[array[int], array[int]]] = {}
        """The positions of strategies with a rollout, and the slots of their buckets, by stickiness."""
        self.segments: list[tuple[int, CompiledStrategy]] = []
        """The slots of strategies with segments."""
        self._constraints = array("I")
        """The slot of each strategy's constraints; 0 if it has none."""
        self._cuts: list[Cuts] = []
        parts: list[bytes] = []
        for flag, fragments in flags:
            self.starts.append(len(parts))
            self.first.append(len(self._cuts))
            parts += (OFF if flag.enabled else DISABLED, OFF_VARIANT, fragments.variants)
            if fragments.names:
                parts.append(fragments.names)
            for strategy, its_fragments in zip(flag.strategies, fragments.strategies, strict=True):
                self._add(parts, strategy, its_fragments)
            parts += (b"", b"")
            self.ends.append(len(parts))
        self._written: tuple[list[int], list[bytes]] = [-1] * len(self._cuts), parts

    def _add(self, parts: list[bytes], strategy: CompiledStrategy, fragments: StrategyFragments) -> None:
        position = len(self._cuts)
        self._cuts.append(fragments.cuts)
        self.verdicts.append(len(parts) + 1)
        parts += (fragments.head, FALSE)
        self.picks.append(fragments.picks)
        self.variants.append(len(parts) if fragments.picks else 0)
        if fragments.picks:
            parts += (b"", fragments.variants)
        self._constraints.append(len(parts) if fragments.cuts else 0)
        if fragments.cuts:
            parts.append(b"")
        parts.append(fragments.end)
        if fragments.links:
            self.segments.append((len(parts), strategy))
            parts += (b"", fragments.links)
        if strategy.rollout is not None:
            positions, slots = self.buckets.setdefault(strategy.rollout.stickiness, (array("I"), array("I")))
            positions.append(position)
            slots.append(len(parts))
            parts.append(b"")

    def replace_flags(self, changed: Mapping[int, tuple[CompiledFlag, FlagFragments]]) -> Layout:
        """This layout with other flags at some positions, whose strategies are the same."""
        layout = copy(self)
        bits, parts = self._written
        bits, parts = bits.copy(), parts.copy()
        layout.picks, layout._cuts = self.picks.copy(), self._cuts.copy()
        for position, flag in changed.items():
            single = Layout([flag])
            first = self.first[position]
            behind = first + len(single._cuts)
            parts[self.starts[position] : self.ends[position]] = single._written[1]
            layout.picks[first:behind] = single.picks
            layout._cuts[first:behind] = single._cuts
            bits[first:behind] = single._written[0]
        layout._written = bits, parts
        return layout

    def write(self, bits: list[int]) -> list[bytes]:
        """A copy of all fragments, in which the constraints of every strategy have these results.

        The copy written last is kept: from one user to the next most constraints have the same result. It is replaced
        as a whole, so that threads may share it.
        """
        before, parts = self._written
        parts = parts.copy()
        if bits != before:
            known: dict[tuple[int, int], bytes] = {}  # what several strategies have is written once
            for position in compress(count(), map(ne, bits, before)):
                if slot := self._constraints[position]:
                    cuts, its_bits = self._cuts[position], bits[position]
                    key = id(cuts), its_bits
                    if key not in known:
                        known[key] = write_results(cuts, its_bits)
                    parts[slot] = known[key]
            self._written = bits, parts.copy()
        return parts
