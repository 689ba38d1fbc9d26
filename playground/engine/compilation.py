"""Documents → a snapshot, taking over what an earlier one has compiled already."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import orjson

from playground.engine.coercion import mapping_of, objects_of, string_of, strings_of, text_of
from playground.engine.constraints import Constraints
from playground.engine.memory import memory_of
from playground.engine.snapshot import CompiledFlag, CompiledSegment, Parent, Snapshot, Templates
from playground.engine.strategies import CompiledStrategy, compile_strategy
from playground.engine.variants import compile_flag_variants


@dataclass(frozen=True, slots=True)
class Known:
    """An earlier snapshot of the same environment, and the projects of which nothing has changed since: neither
    their flags nor the segments these use. Their documents need not be given again."""

    snapshot: Snapshot
    same: Collection[str]


def compile_snapshot(
    flags: Iterable[Mapping[str, Any]],
    segments: Mapping[int, Mapping[str, Any]],
    *,
    environment: str,
    templates: Templates | None = None,
    known: Known | None = None,
) -> Snapshot:
    """Compiles flags (see definitions.FlagDefinition) and the segments they use, by id.

    Dependencies are resolved among the flags given here and those of ``known``. From there, the flags of its ``same``
    projects are taken over, and others whose document is as it was. Never raises, whatever is stored.
    """
    return _Compilation(templates, known).run(flags, segments, environment)


class _Compilation:
    def __init__(self, templates: Templates | None, known: Known | None) -> None:
        self.templates = templates
        self.known = known
        base = known.snapshot if known else None
        self.compiler = Constraints(base.columns if base else None)
        self.segments = list(base.segments) if base else []
        self.replaced: list[CompiledSegment] = []
        self.positions = {segment.id: position for position, segment in enumerate(self.segments)}

    def run(
        self,
        documents: Iterable[Mapping[str, Any]],
        segments: Mapping[int, Mapping[str, Any]],
        environment: str,
    ) -> Snapshot:
        new_segments = self._add_segments(segments)
        kept, older = self._known_flags()
        # Sorted before compiling: what is evaluated together then lies together in memory.
        ordered = sorted(map(mapping_of, documents), key=lambda flag: text_of(flag.get("name")))
        new: list[CompiledFlag] = []
        for document in ordered:
            digest = _digest(document)
            flag = older.get(digest) if digest else None
            if flag is None:
                flag = self._flag(document, digest)
                new.append(flag)
            kept.append(flag)
        kept.sort(key=lambda flag: flag.name)
        nbytes = memory_of(new, new_segments, self.templates) + self._taken_over(kept)
        return Snapshot(
            tuple(kept),
            tuple(self.segments),
            self.compiler.columns,
            environment=environment,
            nbytes=nbytes,
            fresh=self.known.snapshot.fresh if self.known else None,
        )

    def _known_flags(self) -> tuple[list[CompiledFlag], dict[bytes, CompiledFlag]]:
        """Those that are taken over, and the others by what they were compiled from."""
        if self.known is None:
            return [], {}
        flags, same = self.known.snapshot.flags, self.known.same
        kept = [flag for flag in flags if flag.project in same]
        return kept, {flag.digest: flag for flag in flags if flag.project not in same and flag.digest}

    def _taken_over(self, flags: Iterable[CompiledFlag]) -> int:
        """About how many bytes of the earlier snapshot are held on to."""
        if self.known is None:
            return 0
        held = set(map(id, flags))
        dropped = [flag for flag in self.known.snapshot.flags if id(flag) not in held]
        return max(self.known.snapshot.nbytes - memory_of(dropped, self.replaced, self.templates), 0)

    def _add_segments(self, documents: Mapping[int, Mapping[str, Any]]) -> list[CompiledSegment]:
        """Those of known ids take their places: whoever refers to them is compiled anew."""
        added = []
        for key, stored in documents.items():
            segment = self._segment(key, mapping_of(stored))
            position = self.positions.setdefault(segment.id, len(self.segments))
            self.replaced += self.segments[position : position + 1]
            self.segments[position : position + 1] = [segment]
            added.append(segment)
        return added

    def _segment(self, key: int, document: Mapping[str, Any]) -> CompiledSegment:
        constraints = self.compiler.compile_all(document.get("constraints"))
        segment = CompiledSegment(
            id=text_of(key),
            name=text_of(document.get("name")),
            conditions=self.compiler.together(constraints),
            template=None,
        )
        if self.templates is None:
            return segment
        return replace(segment, template=self.templates.segment({"id": key, **document}, segment))

    def _flag(self, document: Mapping[str, Any], digest: bytes) -> CompiledFlag:
        name = text_of(document.get("name"))
        strategies = tuple(
            compile_strategy(strategy, name, self.positions, self.compiler)
            for strategy in objects_of(document.get("strategies"))
        )
        flag = CompiledFlag(
            name=name,
            project=text_of(document.get("project")),
            enabled=bool(document.get("enabled")),
            strategies=strategies,
            variants=compile_flag_variants(document.get("variants"), name, self.compiler.columns),
            parents=tuple(_parents(document.get("dependencies"))),
            fault=self._fault(strategies),
            digest=b"" if any(s.segments or s.missing_segments for s in strategies) else digest,
            template=None,
        )
        return flag if self.templates is None else replace(flag, template=self.templates.flag(document, flag))

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


def _digest(document: Mapping[str, Any]) -> bytes:
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
