"""Definitions compiled once, evaluated many times."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from playground.engine.constraints import CompiledConstraint, Conditions, Constraints
from playground.engine.context import Columns
from playground.engine.memory import memory_of
from playground.engine.reading import mapping_of, objects_of, string_of, strings_of, text_of
from playground.engine.strategies import CompiledStrategy, compile_strategy
from playground.engine.variants import CompiledVariants, compile_flag_variants


@dataclass(frozen=True, slots=True)
class CompiledSegment:
    """A segment: all its constraints have to hold. `template` is the caller's (see Templates)."""

    id: str
    name: str
    conditions: Conditions
    template: Any

    @property
    def constraints(self) -> tuple[CompiledConstraint, ...]:
        return self.conditions.constraints


@dataclass(frozen=True, slots=True)
class Parent:
    """What a flag needs of another. `variants` is empty where any will do."""

    name: str
    enabled: bool
    variants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompiledFlag:
    """A flag in one environment, ready to run. `fault` is why SDKs cannot read it, None if they can."""

    name: str
    project: str
    enabled: bool
    strategies: tuple[CompiledStrategy, ...]
    variants: CompiledVariants | None
    parents: tuple[Parent, ...]
    fault: str | None
    template: Any


@dataclass(frozen=True, slots=True)
class Templates:
    """What a caller wants made ahead for its own output, once per flag and segment.

    Each function gets the stored document and the compiled object (with `template` None); what it returns is
    kept as `template` and never looked at here. `size` tells the bytes one of them holds.
    """

    flag: Callable[[Mapping[str, Any], CompiledFlag], Any]
    segment: Callable[[Mapping[str, Any], CompiledSegment], Any]
    size: Callable[[Any], int]


class Snapshot:
    """Compiled flags of one environment, sorted by name (code points). Immutable; safe to share."""

    def __init__(
        self,
        flags: tuple[CompiledFlag, ...],
        segments: tuple[CompiledSegment, ...],
        columns: Columns,
        conditions: int,
        *,
        environment: str,
        nbytes: int,
    ) -> None:
        self.flags = flags
        self.segments = segments
        self.columns = columns
        self.conditions = conditions
        """How many different Conditions the flags and segments have."""
        self.environment = environment
        self.nbytes = nbytes
        """About how much memory the snapshot holds, in bytes."""

    @cached_property
    def names(self) -> list[str]:
        return [flag.name for flag in self.flags]

    @cached_property
    def positions(self) -> dict[str, int]:
        """Where the flag of a name is."""
        return {flag.name: position for position, flag in enumerate(self.flags)}

    @cached_property
    def children(self) -> list[int]:
        """The positions of the flags that depend on others."""
        return [position for position, flag in enumerate(self.flags) if flag.parents]

    def only(self, name: str) -> Snapshot:
        """The flag of this name with its parents (empty if it is unknown): all it takes to evaluate it."""
        if name not in self.positions:
            return self._of([])
        wanted = {name, *(parent.name for parent in self.flags[self.positions[name]].parents)}
        return self._of([flag for flag in self.flags if flag.name in wanted])

    def within(self, projects: Collection[str]) -> Snapshot:
        """The flags of these projects; parents outside of them count as missing."""
        return self._of([flag for flag in self.flags if flag.project in projects])

    def _of(self, flags: list[CompiledFlag]) -> Snapshot:
        """A view on some of the flags: it shares everything, so it has no size of its own."""
        return Snapshot(
            tuple(flags), self.segments, self.columns, self.conditions, environment=self.environment, nbytes=0
        )


def compile_snapshot(
    flags: Iterable[Mapping[str, Any]],
    segments: Mapping[int, Mapping[str, Any]],
    *,
    environment: str,
    templates: Templates | None = None,
) -> Snapshot:
    """Compiles flags (see definitions.FlagDefinition) and the segments they use, by id.

    Dependencies are resolved among the flags given here. Never raises, whatever is stored.
    """
    compiler = Constraints()
    compiled_segments, positions = _segments(segments, compiler, templates)
    # Sorted before compiling: what is evaluated together then lies together in memory.
    documents = sorted(map(mapping_of, flags), key=lambda flag: text_of(flag.get("name")))
    compiled = [_flag(flag, compiled_segments, positions, compiler, templates) for flag in documents]
    return Snapshot(
        tuple(compiled),
        compiled_segments,
        compiler.columns,
        compiler.count(),
        environment=environment,
        nbytes=memory_of(compiled, compiled_segments, templates),
    )


def _segments(
    segments: Mapping[int, Mapping[str, Any]], compiler: Constraints, templates: Templates | None
) -> tuple[tuple[CompiledSegment, ...], dict[str, int]]:
    compiled = []
    positions = {}
    for position, (key, stored) in enumerate(segments.items()):
        document = mapping_of(stored)
        constraints = compiler.compile_all(document.get("constraints"))
        segment = CompiledSegment(
            id=text_of(key),
            name=text_of(document.get("name")),
            conditions=compiler.together(constraints),
            template=None,
        )
        if templates is not None:
            segment = replace(segment, template=templates.segment({"id": key, **document}, segment))
        positions[segment.id] = position
        compiled.append(segment)
    return tuple(compiled), positions


def _flag(
    document: Mapping[str, Any],
    segments: tuple[CompiledSegment, ...],
    positions: Mapping[str, int],
    compiler: Constraints,
    templates: Templates | None,
) -> CompiledFlag:
    name = text_of(document.get("name"))
    strategies = tuple(
        compile_strategy(strategy, name, positions, compiler)
        for strategy in objects_of(document.get("strategies"))
    )
    flag = CompiledFlag(
        name=name,
        project=text_of(document.get("project")),
        enabled=bool(document.get("enabled")),
        strategies=strategies,
        variants=compile_flag_variants(document.get("variants"), name, compiler.columns),
        parents=tuple(_parents(document.get("dependencies"))),
        fault=_fault(strategies, segments),
        template=None,
    )
    return flag if templates is None else replace(flag, template=templates.flag(document, flag))


def _fault(strategies: tuple[CompiledStrategy, ...], segments: tuple[CompiledSegment, ...]) -> str | None:
    for strategy in strategies:
        if strategy.fault is not None:
            return strategy.fault
        if strategy.counts:
            for position in strategy.segments:
                for constraint in segments[position].constraints:
                    if constraint.fault is not None:
                        return f"in segment {segments[position].name}, {constraint.fault}"
    return None


def _parents(documents: object) -> Iterator[Parent]:
    for document in objects_of(documents):
        name = string_of(document.get("feature"))
        if name is not None:
            enabled = document.get("enabled") is not False
            variants = tuple(strings_of(document.get("variants"))) if enabled else ()
            yield Parent(name, enabled, variants)
