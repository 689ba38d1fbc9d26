"""A snapshot of the engine with the serialized parts that all its answers share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from playground.engine.compilation import Compilation
from playground.engine.flags import CompiledFlag
from playground.engine.snapshot import Snapshot
from playground.response.fragments import (
    Earlier,
    FlagFragments,
    SegmentFragments,
    make_flag_fragments,
    make_segment_fragments,
)
from playground.response.frontend import Toggles
from playground.response.layout import Layout

Batch = tuple[Sequence[Mapping[str, Any]], Mapping[int, Mapping[str, Any]]]
"""Flags, and those of their segments, by id, that no batch before had."""

LAID_OUT = 0.2
"""The part of a flag's memory that is not shared with other snapshots that have it. Measured."""


@dataclass(frozen=True, slots=True)
class ProjectSize:
    """About how much memory the compiled flags of a project take, with their fragments.

    Snapshots that took over the project have the same object: they share the memory.
    """

    nbytes: int


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
        """Prepares what the first evaluation and the first answer would prepare."""
        _ = self.layout, self.snapshot.batch

    @cached_property
    def nbytes(self) -> int:
        """About how much memory it takes besides its pieces: its layout, its batch and its segments."""
        laid_out = sum(flag.nbytes for flag in self.flags) * LAID_OUT
        return int(laid_out) + sum(segment.nbytes for segment in self.segments)


def compile_playground(
    flags: Sequence[Mapping[str, Any]],
    segments: Mapping[int, Mapping[str, Any]],
    *,
    environment: str,
    earlier: ResponseSnapshot | None = None,
    unchanged: Collection[str] = (),
    replaced: Collection[str] = (),
) -> ResponseSnapshot:
    """Compiles documents, taking over from an `earlier` snapshot what has not changed.

    See `playground.engine.compilation.recompile`. `environment` stands in links as it is given here.
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
    """Like ``compile_playground``, of batches of flags and segments, none of which is kept."""
    compilation = Compilation(environment, earlier.snapshot if earlier else None, unchanged, replaced)
    known_flags: dict[int, FlagFragments] = {}
    known_segments: dict[int, SegmentFragments] = {}
    if earlier is not None:  # by identity: what was taken over is the same object
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
    fragments = tuple(known_flags[id(flag)] for flag in snapshot.flags)
    known = earlier.pieces if earlier is not None else {}
    response = ResponseSnapshot(
        snapshot,
        fragments,
        tuple(known_segments[id(segment)] for segment in snapshot.segments),
        _measure(snapshot, fragments) | {name: known[name] for name in unchanged if name in known},
        earlier,
    )
    if earlier is not None and same_strategies and "layout" in earlier.__dict__:
        response.layout = earlier.layout.replace_flags(_find_changed(earlier, response))
    return response


def _find_changed(
    before: ResponseSnapshot, after: ResponseSnapshot
) -> dict[int, tuple[CompiledFlag, FlagFragments]]:
    """The flags that are others than before, by position."""
    flags = zip(before.snapshot.flags, after.snapshot.flags, after.flags, strict=True)
    return {
        position: (flag, fragments)
        for position, (earlier, flag, fragments) in enumerate(flags)
        if flag is not earlier
    }


def _measure(snapshot: Snapshot, fragments: Iterable[FlagFragments]) -> dict[str, ProjectSize]:
    sizes: Counter[str] = Counter()
    for flag, its_fragments in zip(snapshot.flags, fragments, strict=True):
        sizes[flag.project] += its_fragments.nbytes
    return {project: ProjectSize(int(size * (1 - LAID_OUT))) for project, size in sizes.items()}
