"""A snapshot: all flags of an environment, compiled once and evaluated many times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain, compress, count
from operator import attrgetter, is_

from playground.engine.batch import Batch
from playground.engine.constraints import CompiledConstraint
from playground.engine.context import Columns, Context, Values
from playground.engine.flags import CompiledFlag, CompiledSegment, Traits
from playground.engine.strategies import CompiledStrategy
from playground.engine.variants import CompiledVariants

SPARE_ENTRIES = 200


class Snapshot:
    """Compiled flags of one environment, sorted by name (code points). Immutable; safe to share."""

    def __init__(
        self,
        flags: tuple[CompiledFlag, ...],
        segments: tuple[CompiledSegment, ...],
        columns: Columns,
        *,
        environment: str,
        compiled_entries: int | None = None,
        is_part: bool = False,
    ) -> None:
        self.flags = flags
        self.segments = segments
        self.columns = columns
        self.environment = environment
        self.entries = len(columns) + len(segments)
        """The number of columns and segments, including reused ones that no flag needs any more."""
        self.compiled_entries = self.entries if compiled_entries is None else compiled_entries
        """The number of entries when everything was last compiled together."""
        self._is_part = is_part

    @property
    def is_worn(self) -> bool:
        """Whether it may have too many unused columns and segments, so that it should be compiled from scratch."""
        return self.entries > 2 * self.compiled_entries + SPARE_ENTRIES

    def values(self, context: Context) -> Values:
        """The values of a context that the flags compare."""
        columns = self.columns
        return columns.values_on_demand(context) if self._is_part else columns.values(context)

    @cached_property
    def batch(self) -> Batch:
        """The strategies and segments, laid out for evaluation."""
        return Batch(self.flags, self.segments)

    def take_over_batch(self, earlier: Snapshot) -> bool:
        """Whether this snapshot has the same strategies and segments as an earlier one, object by object.

        If so, reuses its batch.
        """
        same = (
            len(self.flags) == len(earlier.flags)
            and len(self.segments) == len(earlier.segments)
            and all(map(is_, self.segments, earlier.segments))
            and all(
                new.strategies is old.strategies for new, old in zip(self.flags, earlier.flags, strict=True)
            )
        )
        if same and "batch" in earlier.__dict__:
            self.batch = earlier.batch
        return same

    @cached_property
    def sizes(self) -> Counter[str]:
        """The number of flags of each project."""
        return Counter(map(attrgetter("project"), self.flags))

    @cached_property
    def projects_in_use(self) -> frozenset[str]:
        """The projects with at least one flag that is switched on."""
        return frozenset(flag.project for flag in self.flags if flag.enabled)

    @cached_property
    def names(self) -> list[str]:
        return [flag.name for flag in self.flags]

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each flag, by name."""
        return {flag.name: position for position, flag in enumerate(self.flags)}

    @cached_property
    def children(self) -> list[int]:
        """The positions of the flags that depend on others."""
        return list(compress(count(), map(attrgetter("parents"), self.flags)))

    @cached_property
    def drawing(self) -> dict[int, set[int]]:
        """The flags whose result may be random, with their children, by the column that a rollout needs."""
        drawing: dict[int, set[int]] = {}
        for position, flag in enumerate(self.flags):
            for strategy in flag.strategies:
                if strategy.rollout is not None and strategy.rollout.draws:
                    drawing.setdefault(strategy.rollout.column, set()).add(position)
        for positions in drawing.values():
            positions.update(
                child
                for child in self.children
                if any(self.positions.get(parent.name) in positions for parent in self.flags[child].parents)
            )
        for child in self.children:
            for column in self.variant_columns(self.flags[child]):
                drawing.setdefault(column, set()).add(child)
        return drawing

    def variant_columns(self, flag: CompiledFlag) -> set[int]:
        """The columns that select the parents' variants which a flag requires."""
        needed = [parent.name for parent in flag.parents if parent.variants and parent.name in self.positions]
        parents = [self.flags[self.positions[name]] for name in needed]
        lists = chain.from_iterable(
            (parent.variants, *(strategy.variants for strategy in parent.strategies)) for parent in parents
        )
        return {variants.column for variants in lists if variants is not None and variants.divides}

    @cached_property
    def clock(self) -> list[CompiledConstraint]:
        """The constraints on currentTime, whose results change even if the definitions do not."""
        flags: list[CompiledFlag] = []
        if any("currentTime" in traits.compared for traits in self._traits):
            flags = [flag for flag in self.flags if "currentTime" in flag.traits.compared]
        constraint_lists = [strategy.constraints for flag in flags for strategy in flag.strategies]
        constraint_lists += [segment.constraints for segment in self._used_segments]
        timed = {
            id(constraint): constraint
            for constraint in chain.from_iterable(constraint_lists)
            if constraint.field == "currentTime"
        }
        return list(timed.values())

    @cached_property
    def static(self) -> list[bool]:
        """For each flag, whether every context gets the same result."""
        return [_is_static(flag) for flag in self.flags]

    @cached_property
    def compared_fields(self) -> frozenset[str]:
        """The context fields that conditions compare."""
        own = frozenset[str]().union(*(traits.compared for traits in self._traits))
        return own.union(*({each.field for each in segment.constraints} for segment in self._used_segments))

    @cached_property
    def exact_fields(self) -> frozenset[str]:
        """The context fields for which each value may get another result, because it is hashed or selects a
        variant.
        """
        exact = frozenset[str]().union(*(traits.exact for traits in self._traits))
        return exact | {"userId", "sessionId"} if "default" in exact else exact

    @cached_property
    def _traits(self) -> list[Traits]:
        return list({id(flag.traits): flag.traits for flag in self.flags}.values())

    @cached_property
    def _used_segments(self) -> list[CompiledSegment]:
        """The segments that flags use. The snapshot may have others, of earlier flags."""
        if not any(traits.has_segments for traits in self._traits):
            return []
        flags = (flag for flag in self.flags if flag.traits.has_segments)
        used = {position for flag in flags for strategy in flag.strategies for position in strategy.segments}
        return [self.segments[position] for position in sorted(used)]

    @cached_property
    def choosing(self) -> frozenset[int]:
        """The columns by which variants are selected."""
        return frozenset(variants.column for variants in self._list_variants() if variants.divides)

    def _list_variants(self) -> Iterator[CompiledVariants]:
        for flag in self.flags:
            lists = (flag.variants, *(strategy.variants for strategy in flag.strategies))
            yield from (variants for variants in lists if variants is not None)

    def only(self, name: str) -> Snapshot:
        """A snapshot of only this flag, its parents and their segments; empty if the name is unknown.

        Its time depends on their number, not on the number of flags.
        """
        if name not in self.positions:
            return self._make([])
        return self.part({name, *(parent.name for parent in self.flags[self.positions[name]].parents)})

    def part(self, names: Collection[str]) -> Snapshot:
        """A snapshot of only these flags and their segments."""
        flags = [self.flags[self.positions[each]] for each in sorted(names) if each in self.positions]
        used = sorted(set(chain.from_iterable(s.segments for flag in flags for s in flag.strategies)))
        return Snapshot(
            tuple(_move_segments(flag, {old: new for new, old in enumerate(used)}) for flag in flags),
            tuple(self.segments[position] for position in used),
            self.columns,
            environment=self.environment,
            is_part=True,
        )

    def without(self, names: Collection[str]) -> Snapshot:
        """This snapshot without some of its flags."""
        return self._make([flag for flag in self.flags if flag.name not in names])

    def _make(self, flags: list[CompiledFlag]) -> Snapshot:
        return Snapshot(tuple(flags), self.segments, self.columns, environment=self.environment)


def _move_segments(flag: CompiledFlag, positions: Mapping[int, int]) -> CompiledFlag:
    """The flag for a snapshot that has its segments at other `positions`."""
    if not any(strategy.segments for strategy in flag.strategies):
        return flag
    moved = [
        replace(strategy, segments=tuple(positions[segment] for segment in strategy.segments))
        for strategy in flag.strategies
    ]
    return replace(flag, strategies=tuple(moved))


def _is_static(flag: CompiledFlag) -> bool:
    """Whether it has no condition, no partial percentage, no choice of variants, and no parent."""
    variant_lists = [flag.variants, *(strategy.variants for strategy in flag.strategies)]
    return (
        not flag.parents
        and not any(variants and (variants.overrides or variants.divides) for variants in variant_lists)
        and all(_is_unconditional(strategy) for strategy in flag.strategies if strategy.counts)
    )


def _is_unconditional(strategy: CompiledStrategy) -> bool:
    rollout = strategy.rollout
    if strategy.conditions.constraints or strategy.segments or strategy.missing_segments:
        return False
    return rollout is None or rollout.threshold <= 0 or (rollout.draws and rollout.threshold >= 100)
