"""Compiles stored flags and segments to a snapshot, reusing what has not changed since an earlier one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from playground.engine.coercion import mapping_of, objects_of, string_of, strings_of, text_of
from playground.engine.constraints import Constraints
from playground.engine.flags import CompiledFlag, CompiledSegment, Parent
from playground.engine.snapshot import Snapshot
from playground.engine.strategies import CompiledStrategy, compile_strategy
from playground.engine.variants import compile_flag_variants

Document = Mapping[str, Any]


class Compiled(NamedTuple):
    """A new snapshot, with the documents of the flags that were not reused from an earlier one."""

    snapshot: Snapshot
    flags: list[tuple[Document, CompiledFlag]]
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
) -> Compiled:
    """Compiles flags and segments like ``compile_snapshot``, reusing parts of an `earlier` snapshot of the environment.

    The documents of `unchanged` projects need not be given: since that snapshot neither their flags nor the segments
    these use have changed. Of other projects, flags whose document is as it was are taken over too.
    """
    return _Compilation(earlier).run(flags, segments, environment, unchanged)


class _Compilation:
    def __init__(self, earlier: Snapshot | None) -> None:
        self.earlier = earlier
        self.compiler = Constraints(earlier.columns if earlier else None)
        self.segments = list(earlier.segments) if earlier else []
        self.positions = {segment.id: position for position, segment in enumerate(self.segments)}

    def run(
        self,
        documents: Iterable[Document],
        segments: Mapping[int, Document],
        environment: str,
        unchanged: Collection[str],
    ) -> Compiled:
        new_segments = self._add_segments(segments)
        new: list[tuple[Document, CompiledFlag]] = []
        flags, by_digest = self._taken_over(unchanged)
        # Sorted before compiling: what is evaluated together then lies together in memory.
        for document in sorted(map(mapping_of, documents), key=lambda flag: text_of(flag.get("name"))):
            digest = _digest(document)
            flag = by_digest.get(digest) if digest else None
            if flag is None:
                flag = self._flag(document, digest)
                new.append((document, flag))
            flags.append(flag)
        flags.sort(key=lambda flag: flag.name)
        snapshot = Snapshot(
            tuple(flags),
            tuple(self.segments),
            self.compiler.columns,
            environment=environment,
            compiled_entries=self.earlier.compiled_entries if self.earlier else None,
        )
        return Compiled(snapshot, new, new_segments)

    def _taken_over(self, unchanged: Collection[str]) -> tuple[list[CompiledFlag], dict[bytes, CompiledFlag]]:
        """The earlier flags of unchanged projects, and the others by the digests of their documents."""
        flags = self.earlier.flags if self.earlier else ()
        kept = [flag for flag in flags if flag.project in unchanged]
        return kept, {flag.digest: flag for flag in flags if flag.digest and flag.project not in unchanged}

    def _add_segments(self, documents: Mapping[int, Document]) -> list[tuple[Document, CompiledSegment]]:
        """A segment that was there takes its old place: the flags that refer to it are compiled again."""
        added: list[tuple[Document, CompiledSegment]] = []
        for key, stored in documents.items():
            document = {"id": key, **mapping_of(stored)}
            segment = self._segment(key, document)
            position = self.positions.setdefault(segment.id, len(self.segments))
            self.segments[position : position + 1] = [segment]
            added.append((document, segment))
        return added

    def _segment(self, key: int, document: Document) -> CompiledSegment:
        constraints = self.compiler.compile_all(document.get("constraints"))
        return CompiledSegment(
            id=text_of(key),
            name=text_of(document.get("name")),
            conditions=self.compiler.together(constraints),
        )

    def _flag(self, document: Document, digest: bytes) -> CompiledFlag:
        name = text_of(document.get("name"))
        strategies = tuple(
            compile_strategy(strategy, name, self.positions, self.compiler)
            for strategy in objects_of(document.get("strategies"))
        )
        return CompiledFlag(
            name=name,
            project=text_of(document.get("project")),
            enabled=bool(document.get("enabled")),
            strategies=strategies,
            variants=compile_flag_variants(document.get("variants"), name, self.compiler.columns),
            parents=tuple(_parents(document.get("dependencies"))),
            fault=self._fault(strategies),
            digest=b"" if any(s.segments or s.missing_segments for s in strategies) else digest,
        )

    def _fault(self, strategies: tuple[CompiledStrategy, ...]) -> str | None:
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


def _digest(document: Document) -> bytes:
    """Of everything a document says; empty for one that JSON cannot hold."""
    try:
        return blake2b(orjson.dumps(document), digest_size=16).digest()
    except TypeError:
        return b""


def _parents(documents: object) -> Iterator[Parent]:
    for document in objects_of(documents):
        name = string_of(document.get("feature"))
        if name is not None:
            enabled = document.get("enabled") is not False
            variants = tuple(strings_of(document.get("variants"))) if enabled else ()
            yield Parent(name, enabled, variants)
