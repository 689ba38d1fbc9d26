"""A snapshot: all flags of an environment, compiled once and evaluated many times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain
from operator import is_

from playground.engine.batch import Batch
from playground.engine.constraints import CompiledConstraint
from playground.engine.context import Columns, Context, Values
from playground.engine.flags import CompiledFlag, CompiledSegment
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
        """The number of columns and segments, among them some that were taken over and no flag needs any more."""
        self.compiled_entries = self.entries if compiled_entries is None else compiled_entries
        """The number of entries when everything was last compiled together."""
        self._is_part = is_part

    @property
    def is_worn(self) -> bool:
        """Whether it may have too many unused columns and segments, so that it should be compiled from scratch."""
        return self.entries > 2 * self.compiled_entries + SPARE_ENTRIES

    def values(self, context: Context) -> Values:
        """The values of a context that its flags compare."""
        columns = self.columns
        return columns.values_on_demand(context) if self._is_part else columns.values(context)

    @cached_property
    def batch(self) -> Batch:
        """The strategies and segments, laid out for evaluation."""
        return Batch(self.flags, self.segments)

    def take_over_batch(self, earlier: Snapshot) -> bool:
        """Whether this snapshot has the same strategies and segments as an earlier one, object by object.

        Then its batch is the same, and is taken over.
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
        return Counter(flag.project for flag in self.flags)

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
        return [position for position, flag in enumerate(self.flags) if flag.parents]

    @cached_property
    def drawing(self) -> dict[int, set[int]]:
        """The flags whose result may be random, by the column whose value a rollout lacks, and their children."""
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
        """The columns by which the variants are chosen that a flag needs of its parents."""
        needed = [parent.name for parent in flag.parents if parent.variants and parent.name in self.positions]
        parents = [self.flags[self.positions[name]] for name in needed]
        lists = chain.from_iterable(
            (parent.variants, *(strategy.variants for strategy in parent.strategies)) for parent in parents
        )
        return {variants.column for variants in lists if variants is not None and variants.divides}

    @cached_property
    def clock(self) -> list[CompiledConstraint]:
        """The constraints on currentTime: their results change while the definitions stay as they are."""
        strategies = [strategy for flag in self.flags for strategy in flag.strategies]
        used = set(chain.from_iterable(strategy.segments for strategy in strategies))
        constraint_lists = [strategy.constraints for strategy in strategies]
        constraint_lists += [self.segments[position].constraints for position in used]
        timed = {
            id(constraint): constraint
            for constraint in chain.from_iterable(constraint_lists)
            if constraint.field == "currentTime"
        }
        return list(timed.values())

    @cached_property
    def static(self) -> list[bool]:
        """For each flag, whether every context gets the same."""
        return [_is_static(flag) for flag in self.flags]

    @cached_property
    def compared_fields(self) -> frozenset[str]:
        """The context fields that conditions compare."""
        strategies = [strategy for flag in self.flags for strategy in flag.strategies]
        used = set(chain.from_iterable(strategy.segments for strategy in strategies))
        conditions = [strategy.constraints for strategy in strategies]
        conditions += [self.segments[position].constraints for position in used]
        return frozenset(constraint.field for constraint in chain.from_iterable(conditions))

    @cached_property
    def exact_fields(self) -> frozenset[str]:
        """The context fields of which every other value may get another result: those that are hashed, or that choose
        a variant."""
        rollouts = (strategy.rollout for flag in self.flags for strategy in flag.strategies)
        hashed = {rollout.stickiness for rollout in rollouts if rollout is not None}
        chosen = set[str]()
        for variants in self._list_variants():
            hashed.add(variants.stickiness)
            chosen.update(field for *_, field in variants.overrides)
        return frozenset(hashed | chosen | ({"userId", "sessionId"} if "default" in hashed else set()))

    @cached_property
    def choosing(self) -> frozenset[int]:
        """The columns by which variants are chosen."""
        return frozenset(variants.column for variants in self._list_variants() if variants.divides)

    def _list_variants(self) -> Iterator[CompiledVariants]:
        for flag in self.flags:
            lists = (flag.variants, *(strategy.variants for strategy in flag.strategies))
            yield from (variants for variants in lists if variants is not None)

    def only(self, name: str) -> Snapshot:
        """A snapshot of only this flag, its parents and their segments; empty if the name is unknown.

        It takes as long as these are many, however many flags there are.
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
    """The flag in a snapshot that has its segments at other `positions`."""
    if not any(strategy.segments for strategy in flag.strategies):
        return flag
    moved = [
        strategy._replace(segments=tuple(positions[segment] for segment in strategy.segments))
        for strategy in flag.strategies
    ]
    return replace(flag, strategies=tuple(moved))


def _is_static(flag: CompiledFlag) -> bool:
    """Whether it has no condition, no percentage between, no choice of variants, and no parent."""
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
