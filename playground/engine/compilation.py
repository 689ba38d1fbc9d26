"""Compiles stored flags and segments to a snapshot, reusing unchanged parts of an earlier one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
from typing import Any, NamedTuple

import orjson

from playground.engine.constraints import Constraints, Shared
from playground.engine.flags import CompiledFlag, CompiledSegment, Parent, Traits
from playground.engine.literals import items_of, mapping_of, objects_of, string_of, strings_of, to_text
from playground.engine.snapshot import Snapshot
from playground.engine.strategies import (
    CompiledStrategy,
    change_percentage,
    compile_strategy,
    take_out_percentage,
)
from playground.engine.variants import compile_flag_variants

Document = Mapping[str, Any]
DIGEST = 16  # bytes
OF_STRATEGY = 2 * DIGEST  # one of the strategy without its percentage, and one of the percentage
MISSING = bytes(DIGEST)  # in place of the digest of a segment that does not exist


class Added(NamedTuple):
    """The flags and segments that were not reused from an earlier snapshot, with their documents.

    Each flag also has the memory, in bytes, of values that it shares with other flags and was the first to have.
    """

    flags: list[tuple[Document, CompiledFlag, int]]
    segments: list[tuple[Document, CompiledSegment]]


class Compiled(NamedTuple):
    """A new snapshot, and its parts that were not reused from an earlier one.

    `same_strategies`: all flags have the earlier strategies, position by position, as after a switch.
    """

    snapshot: Snapshot
    same_strategies: bool
    flags: list[tuple[Document, CompiledFlag, int]]
    segments: list[tuple[Document, CompiledSegment]]


def compile_snapshot(
    flags: Iterable[Document], segments: Mapping[int, Document], *, environment: str
) -> Snapshot:
    """Compiles flags (see definitions.FlagDefinition) and the segments they use, by id.

    Never raises, whatever is stored.
    """
    return recompile(flags, segments, environment=environment).snapshot


def recompile(
    flags: Iterable[Document],
    segments: Mapping[int, Document],
    *,
    environment: str,
    earlier: Snapshot | None = None,
    unchanged: Collection[str] = (),
    replaced: Collection[str] = (),
) -> Compiled:
    """Compiles flags and segments like `compile_snapshot`, reusing parts of an `earlier` snapshot of the environment.

    The documents of `unchanged` projects are optional, except for flags that are `replaced`: neither their other
    flags nor the segments these use have changed since that snapshot. Elsewhere, flags with an unchanged document are
    reused, and so are unchanged strategies of changed flags.
    """
    compilation = Compilation(environment, earlier, unchanged, replaced)
    added = compilation.add(flags, segments)
    return Compiled(*compilation.finished(), *added)


class Digests(NamedTuple):
    """Digests of a whole flag, of its strategies with their segments, and of the `rest`.

    All are empty if JSON cannot represent the flag.
    """

    flag: bytes
    strategies: bytes
    rest: bytes


class Compilation:
    """Compiles in steps, unlike ``recompile``, so that not all documents need to be in memory."""

    def __init__(
        self,
        environment: str,
        earlier: Snapshot | None = None,
        unchanged: Collection[str] = (),
        replaced: Collection[str] = (),
    ) -> None:
        self.environment = environment
        self.earlier = earlier
        self.shared = Shared()
        self.compiler = Constraints(earlier.columns if earlier else None, self.shared)
        self.segments = list(earlier.segments) if earlier else []
        self.positions = {segment.id: position for position, segment in enumerate(self.segments)}
        self.kept, self.by_name = _split(earlier, unchanged, replaced) if earlier else ([], {})
        self.added: list[CompiledFlag] = []

    def add(self, documents: Iterable[Document], segments: Mapping[int, Document]) -> Added:
        """Adds flags and all segments that they use and that were not given before."""
        new_segments = self._add_segments(segments)
        new: list[tuple[Document, CompiledFlag, int]] = []
        # Sorted before compiling, so that flags evaluated together are adjacent in memory.
        for document in sorted(map(mapping_of, documents), key=lambda flag: to_text(flag.get("name"))):
            digests = self._compute_digests(document)
            flag = self.by_name.get(to_text(document.get("name")))
            if flag is None or not digests.flag or flag.digest != digests.flag:
                before = self.shared.nbytes
                flag = self._compile_flag(document, digests, flag)
                new.append((document, flag, self.shared.nbytes - before))
            self.added.append(flag)
        return Added(new, new_segments)

    def finished(self) -> tuple[Snapshot, bool]:
        """The snapshot, and whether all flags have the strategies of the earlier one."""
        snapshot = Snapshot(
            tuple(sorted(self.kept + self.added, key=attrgetter("name"))),
            tuple(self.segments),
            self.compiler.columns,
            environment=self.environment,
            compiled_entries=self.earlier.compiled_entries if self.earlier else None,
        )
        return snapshot, self.earlier is not None and snapshot.take_over_batch(self.earlier)

    def _add_segments(self, documents: Mapping[int, Document]) -> list[tuple[Document, CompiledSegment]]:
        """Adds segments. An existing segment keeps its position: flags that refer to it are compiled again."""
        added: list[tuple[Document, CompiledSegment]] = []
        for key, stored in documents.items():
            document = {"id": key, **mapping_of(stored)}
            digest = _compute_digest(document)
            position = self.positions.setdefault(to_text(key), len(self.segments))
            if digest and position < len(self.segments) and self.segments[position].digest == digest:
                continue
            segment = self._compile_segment(key, document, digest)
            self.segments[position : position + 1] = [segment]
            added.append((document, segment))
        return added

    def _compile_segment(self, key: int, document: Document, digest: bytes) -> CompiledSegment:
        constraints = self.compiler.compile_all(document.get("constraints"))
        return CompiledSegment(
            id=to_text(key),
            name=to_text(document.get("name")),
            conditions=self.compiler.together(constraints),
            digest=digest,
        )

    def _compile_flag(
        self, document: Document, digests: Digests, earlier: CompiledFlag | None
    ) -> CompiledFlag:
        """Compiles a flag. Reuses unchanged parts of the `earlier` flag with its name."""
        name = to_text(document.get("name"))
        strategies = self._compile_strategies(document, name, digests.strategies, earlier)
        if earlier is not None and earlier.digest == _combine(digests.rest, earlier.strategies_digest):
            variants = earlier.variants
        else:
            variants = compile_flag_variants(
                document.get("variants"), name, self.compiler.columns, self.shared
            )
        return CompiledFlag(
            name=name,
            project=self.shared(to_text(document.get("project"))),
            enabled=bool(document.get("enabled")),
            strategies=strategies,
            variants=variants,
            parents=tuple(_read_parents(document.get("dependencies"))),
            fault=self._find_fault(strategies),
            digest=digests.flag,
            strategies_digest=digests.strategies,
            traits=self.shared(Traits.of(strategies, variants)),
        )

    def _compile_strategies(
        self, document: Document, flag: str, digests: bytes, earlier: CompiledFlag | None
    ) -> tuple[CompiledStrategy, ...]:
        if earlier is not None and digests and earlier.strategies_digest == digests:
            return earlier.strategies
        known: dict[
            bytes, CompiledStrategy
        ] = {}  # by the whole digest, and by the digest without the percentage
        if earlier is not None and earlier.strategies_digest:
            for digest, strategy in zip(_cut(earlier.strategies_digest), earlier.strategies, strict=True):
                known[digest] = known[digest[:DIGEST]] = strategy
        documents = objects_of(document.get("strategies"))
        return tuple(
            known.get(digest)
            or (digest[:DIGEST] in known and change_percentage(known[digest[:DIGEST]], strategy))
            or compile_strategy(strategy, flag, self.positions, self.compiler)
            for strategy, digest in zip(documents, _cut(digests) or [b""] * len(documents), strict=True)
        )

    def _compute_digests(self, document: Document) -> Digests:
        parts = [
            self._compute_strategy_digest(strategy) for strategy in objects_of(document.get("strategies"))
        ]
        rest = _compute_digest({key: value for key, value in document.items() if key != "strategies"})
        if not (rest and all(parts)):
            return Digests(b"", b"", b"")
        of_strategies = b"".join(parts)
        return Digests(_combine(rest, of_strategies), of_strategies, rest)

    def _compute_strategy_digest(self, document: Document) -> bytes:
        document, percentage = take_out_percentage(document)
        parts = [_compute_digest(document)]
        for segment in items_of(document.get("segments")):
            position = self.positions.get(to_text(segment))
            parts.append(MISSING if position is None else self.segments[position].digest)
        of_percentage = _compute_percentage_digest(percentage)
        if not (all(parts) and of_percentage):
            return b""
        return (parts[0] if len(parts) == 1 else _hash_text(b"".join(parts))) + of_percentage

    def _find_fault(self, strategies: tuple[CompiledStrategy, ...]) -> str | None:
        for strategy in strategies:
            if strategy.fault is not None:
                return strategy.fault
            if strategy.counts:
                for position in strategy.segments:
                    segment = self.segments[position]
                    for constraint in segment.constraints:
                        if constraint.fault is not None:
                            return f"in segment {segment.name}, {constraint.fault}"
        return None


def _split(
    earlier: Snapshot, unchanged: Collection[str], replaced: Collection[str]
) -> tuple[list[CompiledFlag], dict[str, CompiledFlag]]:
    """The flags that stay as they are, and by name those that may have changed."""
    kept = list(earlier.flags)
    if not earlier.sizes.keys() <= set(unchanged):
        changed = {flag.name: flag for flag in kept if flag.project not in unchanged or flag.name in replaced}
        return [flag for flag in kept if flag.name not in changed], changed
    changed = {}
    for name in replaced:  # a few of perhaps very many
        position = bisect_left(kept, name, key=attrgetter("name"))
        if position < len(kept) and kept[position].name == name:
            changed[name] = kept.pop(position)
    return kept, changed


def _compute_digest(document: object) -> bytes:
    """Hashes everything in a document; empty if JSON cannot represent it."""
    try:
        return _hash_text(orjson.dumps(document))
    except TypeError:
        return b""


def _compute_percentage_digest(percentage: object) -> bytes:
    is_usual = type(percentage) is str and len(percentage) <= len("100")
    return _compute_usual_digest(percentage) if is_usual else _compute_digest(percentage)


@lru_cache(maxsize=128)
def _compute_usual_digest(percentage: str) -> bytes:
    return _compute_digest(percentage)


def _combine(rest: bytes, of_strategies: bytes) -> bytes:
    """The digest of a whole flag."""
    return _hash_text(rest + of_strategies)


def _cut(digests: bytes) -> list[bytes]:
    return [digests[start : start + OF_STRATEGY] for start in range(0, len(digests), OF_STRATEGY)]


def _hash_text(text: bytes) -> bytes:
    return blake2b(text, digest_size=DIGEST).digest()


def _read_parents(documents: object) -> Iterator[Parent]:
    for document in objects_of(documents):
        name = string_of(document.get("feature"))
        if name is not None:
            enabled = document.get("enabled") is not False
            variants = tuple(strings_of(document.get("variants"))) if enabled else ()
            yield Parent(name, enabled, variants)
