"""A snapshot of the engine with the serialized parts that all its answers share."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, count
from operator import ne
from typing import Any

from playground.engine.compilation import Compilation
from playground.engine.flags import CompiledFlag
from playground.engine.snapshot import Snapshot
from playground.engine.strategies import CompiledStrategy
from playground.response.fragments import (
    FALSE,
    TRUE,
    Cuts,
    Earlier,
    FlagFragments,
    SegmentFragments,
    StrategyFragments,
    make_flag_fragments,
    make_segment_fragments,
    write_results,
)
from playground.response.frontend import Toggles

Batch = tuple[Sequence[Mapping[str, Any]], Mapping[int, Mapping[str, Any]]]
"""Flags, and those of their segments, by id, that no earlier batch contained."""

LAID_OUT = 0.2
"""The part of a flag's memory that other snapshots with the flag do not share. Measured."""


@dataclass(frozen=True, slots=True)
class ProjectSize:
    """The approximate memory of the compiled flags of a project, with their fragments.

    Snapshots that reuse the project have the same object: they share the memory, except for ``laid_out``.
    """

    total: int

    @property
    def laid_out(self) -> int:
        return int(self.total * LAID_OUT)

    @property
    def nbytes(self) -> int:
        return self.total - self.laid_out


NO_FLAGS = ProjectSize(0)


class ResponseSnapshot:
    """A `snapshot` to evaluate, and the fragments of its `flags` and `segments` by position.

    `pieces` are the sizes of its projects. Immutable; safe to share.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        flags: tuple[FlagFragments, ...],
        segments: tuple[SegmentFragments, ...],
        pieces: Mapping[str, ProjectSize],
        earlier: ResponseSnapshot | None = None,
    ) -> None:
        """`earlier` is the snapshot that this one was compiled from."""
        self.snapshot = snapshot
        self.flags = flags
        self.toggles: Toggles = Toggles(snapshot, flags, earlier.toggles if earlier else None)
        self.segments = segments
        self.pieces = pieces

    @cached_property
    def layout(self) -> Layout:
        """The position of everything in an answer."""
        return Layout(zip(self.snapshot.flags, self.flags, strict=True))

    def lay_out(self) -> None:
        """Prepares the parts that the first evaluation and the first answer would otherwise prepare."""
        _ = self.layout, self.snapshot.batch

    @cached_property
    def nbytes(self) -> int:
        """The approximate memory besides its pieces: its layout, its batch and its segments."""
        laid_out = sum(size.laid_out for size in self.pieces.values())
        return laid_out + sum(segment.nbytes for segment in self.segments)


def compile_playground(
    flags: Sequence[Mapping[str, Any]],
    segments: Mapping[int, Mapping[str, Any]],
    *,
    environment: str,
    earlier: ResponseSnapshot | None = None,
    unchanged: Collection[str] = (),
    replaced: Collection[str] = (),
) -> ResponseSnapshot:
    """Compiles documents, reusing unchanged parts of an `earlier` snapshot.

    See `playground.engine.compilation.recompile`. `environment` appears in links in this form.
    """
    return compile_batches(
        [(flags, segments)],
        environment=environment,
        earlier=earlier,
        unchanged=unchanged,
        replaced=replaced,
    )


def compile_batches(
    batches: Iterable[Batch],
    *,
    environment: str,
    earlier: ResponseSnapshot | None = None,
    unchanged: Collection[str] = (),
    replaced: Collection[str] = (),
) -> ResponseSnapshot:
    """Like ``compile_playground``, for batches of flags and segments, none of which is kept."""
    compilation = Compilation(environment, earlier.snapshot if earlier else None, unchanged, replaced)
    known_flags: dict[int, FlagFragments] = {}
    known_segments: dict[int, SegmentFragments] = {}
    if earlier is not None:  # by identity: reused parts are the same objects
        known_flags.update(zip(map(id, earlier.snapshot.flags), earlier.flags, strict=True))
        known_segments.update(zip(map(id, earlier.snapshot.segments), earlier.segments, strict=True))
    for flags, segments in batches:
        added = compilation.add(flags, segments)
        for document, flag, nbytes in added.flags:
            before = compilation.by_name.get(flag.name)
            same = Earlier(before, known_flags[id(before)]) if before is not None else None
            known_flags[id(flag)] = make_flag_fragments(
                document, flag, environment, compilation.shared, nbytes, same
            )
        for document, segment in added.segments:
            known_segments[id(segment)] = make_segment_fragments(document, segment, compilation.shared)
    snapshot, same_strategies = compilation.finished()
    growth: Counter[str] = Counter()
    for flag in compilation.added:
        growth[flag.project] += known_flags[id(flag)].nbytes
    for flag in compilation.by_name.values():
        growth[flag.project] -= known_flags[id(flag)].nbytes
    response = ResponseSnapshot(
        snapshot,
        tuple(map(known_flags.__getitem__, map(id, snapshot.flags))),
        tuple(known_segments[id(segment)] for segment in snapshot.segments),
        _grow(earlier.pieces if earlier is not None else {}, growth),
        earlier,
    )
    if earlier is not None and same_strategies and "layout" in earlier.__dict__:
        response.layout = earlier.layout.replace_flags(_find_changed(earlier, response))
    return response


def _find_changed(
    before: ResponseSnapshot, after: ResponseSnapshot
) -> dict[int, tuple[CompiledFlag, FlagFragments]]:
    """The changed flags, by position."""
    flags = zip(before.snapshot.flags, after.snapshot.flags, after.flags, strict=True)
    return {
        position: (flag, fragments)
        for position, (earlier, flag, fragments) in enumerate(flags)
        if flag is not earlier
    }


def _grow(sizes: Mapping[str, ProjectSize], growth: Mapping[str, int]) -> dict[str, ProjectSize]:
    """The sizes of projects after some have grown by these numbers of bytes; projects without flags are left out."""
    grown = dict(sizes)
    for project, nbytes in growth.items():
        before = grown.pop(project, NO_FLAGS)
        if total := before.total + nbytes:
            grown[project] = ProjectSize(total)
    return grown


ON, OFF, DISABLED = (
    b'},{"isEnabled":%b,"isEnabledInCurrentEnvironment":%b' % (on, enabled)
    + b',"hasUnsatisfiedDependency":false,"variant":'
    for on, enabled in ((TRUE, TRUE), (FALSE, TRUE), (FALSE, FALSE))
)
"""The head of a flag without unmet parents. A flag that is disabled in the environment is never on."""
BETWEEN = 2
"""Bytes at the beginning of a head that end the previous flag; the first one omits them."""
OFF_VARIANT = b'{"name":"disabled","enabled":false,"feature_enabled":false'

# Slots of a flag, counted from its first one ...
VARIANT, VARIANTS = 1, 2
# ... and back from the first one of the next.
RESULT, REASON = 2, 1


class Layout:
    """The fragments of an answer in their order, with slots for the parts that depend on the context.

    A flag begins with its head, the application's variant, and the list of variants; it ends with its result and the
    reason. A strategy has slots for its verdict, the variant it picks, its constraints with their results, its
    segments, and the end that begins with its bucket.
    """

    def __init__(self, flags: Iterable[tuple[CompiledFlag, FlagFragments]]) -> None:
        self.starts, self.ends = array("I"), array("I")
        """The first slot of each flag, and of the next flag."""
        self.verdicts = array("I")
        """The slot of each strategy's verdict."""
        self.first = array("I")
        """The position of each flag's first strategy."""
        self.variants = array("I")
        """The slot of the variant that each strategy picks, followed by the list of variants; 0 if it has none."""
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
        """This layout with other flags at some positions, with the same strategies."""
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
        """A copy of all fragments, with these results in the constraints of every strategy.

        The last copy is kept: most constraints have the same result for the next user. It is replaced as a whole, so
        that threads may share it.
        """
        before, parts = self._written
        parts = parts.copy()
        if bits != before:
            known: dict[tuple[int, int], bytes] = {}  # the text for several equal strategies is written once
            for position in compress(count(), map(ne, bits, before)):
                if slot := self._constraints[position]:
                    cuts, its_bits = self._cuts[position], bits[position]
                    key = id(cuts), its_bits
                    if key not in known:
                        known[key] = write_results(cuts, its_bits)
                    parts[slot] = known[key]
            self._written = bits, parts.copy()
        return parts
