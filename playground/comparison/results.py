"""The exact results of one flag for all contexts of a table: randomness is a share, never drawn.

The shares of answers are over many calls with one context. The steps are those of `playground.engine.batch` and
`evaluator`, each for all contexts at once. Tests compare every result with theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from fractions import Fraction
from operator import sub
from typing import NamedTuple

from playground.comparison.table import ContextTable, Mask
from playground.engine.batch import list_constraints
from playground.engine.constraints import Conditions
from playground.engine.flags import CompiledFlag, Parent
from playground.engine.operators import UNDECIDABLE
from playground.engine.outcomes import State
from playground.engine.snapshot import Snapshot
from playground.engine.strategies import CompiledStrategy, Mode, Rollout
from playground.engine.variants import NONE, CompiledVariants, Payload

ONE, ZERO = Fraction(1), Fraction(0)


class Answer(NamedTuple):
    """The result of one call; `state` is on, off or unknown."""

    state: State
    variant: str | None = None
    payload: Payload | None = None


Shares = tuple[tuple[Answer, Fraction], ...]
"""The answers over many calls with one context, with the share of each; together 1."""

OFF, UNKNOWN = Answer(State.OFF), Answer(State.UNKNOWN)
ALWAYS_OFF: Shares = ((OFF, ONE),)
ALWAYS_ON: Shares = ((Answer(State.ON), ONE),)


Met = tuple[Fraction, Fraction]
"""The share of calls on which a condition holds, and on which only an SDK can tell."""


def share_switched(shares: Shares, enabled: bool) -> Met:
    """The share of calls on which a parent is on, or off."""
    wanted = State.ON if enabled else State.OFF
    return _share_met(shares, lambda answer: answer.state is wanted)


def share_with_variant(shares: Shares, variants: Collection[str]) -> Met:
    """The share of calls on which a parent that is on yields one of these variants, or none (satisfies any)."""
    return _share_met(shares, lambda answer: answer.variant in (None, *variants))


def combine_met(some: Met, others: Met) -> Met:
    """Combines two independent random conditions."""
    met, possible = some[0] * others[0], sum(some) * sum(others)
    return met, possible - met


def _share_met(shares: Shares, is_met: Callable[[Answer], bool]) -> Met:
    met = unknown = ZERO
    for answer, share in shares:
        if answer.state is State.UNKNOWN:
            unknown += share
        elif is_met(answer):
            met += share
    return met, unknown


def apply_parents(shares: Shares, met: Fraction, unknown: Fraction) -> Shares:
    """The results of a flag whose parents are in the required state on a share of calls. Off always stays off."""
    answers: dict[Answer, Fraction] = {}
    for answer, share in shares:
        if answer.state is State.OFF:
            add_share(answers, OFF, share)
        else:
            add_share(answers, answer, share * met)
            add_share(answers, UNKNOWN, share * unknown)
            add_share(answers, OFF, share * (1 - met - unknown))
    return sort_shares(answers)


def add_share(answers: dict[Answer, Fraction], answer: Answer, share: Fraction) -> dict[Answer, Fraction]:
    if share:
        answers[answer] = answers.get(answer, ZERO) + share
    return answers


def sort_shares(answers: dict[Answer, Fraction]) -> Shares:
    return tuple(sorted(answers.items(), key=lambda item: sort_key(item[0])))


def sort_key(answer: Answer) -> tuple[str, str, Payload]:
    return answer.state.value, answer.variant or "", answer.payload or ("", "")


def drop_payloads(shares: Shares) -> Shares:
    """The same shares without payloads."""
    return replace_payloads(shares, lambda payload: None)


def replace_payloads(shares: Shares, replace: Callable[[Payload], Payload | None]) -> Shares:
    answers: dict[Answer, Fraction] = {}
    for answer, share in shares:
        payload = None if answer.payload is None else replace(answer.payload)
        add_share(answers, answer._replace(payload=payload), share)
    return sort_shares(answers)


Picks = list[tuple[Mask, Shares]]
"""Sets of contexts with their answers while the flag is on."""


class Path(NamedTuple):
    """The decisions of the strategies so far: the share of calls on which each passed, and the share of the others on
    which no strategy passed for certain or only an SDK can tell.
    """

    passed: tuple[tuple[int, Fraction], ...] = ()
    failed: Fraction = ONE
    unknown: Fraction = ZERO

    def after(self, strategy: int, share: Fraction, verdict: bool | None) -> Path:
        """This path after a strategy with this verdict on a share of calls, and failure on the others."""
        rest = 1 - share
        if verdict is None:
            return self._replace(failed=self.failed * rest, unknown=self.unknown + self.failed * share)
        passed = (*self.passed, (strategy, (self.failed + self.unknown) * share))
        return Path(passed, self.failed * rest, self.unknown * rest)


class StateResults:
    """The results of the flags of one state for the contexts of a table."""

    def __init__(self, snapshot: Snapshot, table: ContextTable) -> None:
        self.snapshot = snapshot
        self.table = table
        self._pairs = snapshot.columns.pairs()
        self._alone: dict[str, dict[Shares, Mask]] = {}
        self._again: dict[str, dict[Shares, Mask]] = {}

    def flag(self, name: str) -> CompiledFlag | None:
        position = self.snapshot.positions.get(name)
        return None if position is None else self.snapshot.flags[position]

    def results(self, name: str) -> dict[Shares, Mask]:
        """The contexts by their results. A flag that does not exist is off."""
        flag = self.flag(name)
        if flag is None:
            return {ALWAYS_OFF: self.table.everyone}
        alone = self._evaluate_without_parents(flag)
        return self._apply_parents(flag, alone) if flag.parents else alone

    def _evaluate_without_parents(self, flag: CompiledFlag) -> dict[Shares, Mask]:
        """The results as if the flag had no parents, cached for its children."""
        results = self._alone.get(flag.name)
        if results is None:
            results = self._alone[flag.name] = self._evaluate_strategies(flag)
        return results

    def _evaluate_strategies(self, flag: CompiledFlag) -> dict[Shares, Mask]:
        if not flag.enabled or flag.fault is not None:
            return {ALWAYS_OFF: self.table.everyone}
        results: dict[Shares, Mask] = defaultdict(int)
        for path, mask in self._find_paths(flag.strategies).items():
            for shares, part in self._split_by_variant(flag, path, mask):
                results[shares] |= part
        return dict(results)

    def _find_paths(self, strategies: tuple[CompiledStrategy, ...]) -> dict[Path, Mask]:
        """Finds the deciding strategies for each set of contexts."""
        decided: dict[Path, Mask] = defaultdict(int)
        open_paths = {Path(): self.table.everyone}
        for index, strategy in enumerate(strategies):
            if not strategy.counts or not open_paths:
                continue
            verdicts = list(self._list_verdicts(strategy))
            still_open: dict[Path, Mask] = defaultdict(int)
            for path, mask in open_paths.items():
                rest = mask
                for where, share, verdict in verdicts:
                    if hit := rest & where:
                        rest ^= hit
                        after = path.after(index, share, verdict)
                        (still_open if after.failed or after.unknown else decided)[after] |= hit
                if rest:
                    still_open[path] |= rest
            open_paths = still_open
        for path, mask in open_paths.items():
            decided[path] |= mask
        return decided

    def _list_verdicts(self, strategy: CompiledStrategy) -> Iterator[tuple[Mask, Fraction, bool | None]]:
        """Yields the contexts for which a strategy passes (True) or only an SDK can tell (None), with the share of
        calls.
        """
        if strategy.mode is Mode.NEVER or strategy.missing_segments:
            return
        where = self._hold(strategy.conditions)
        for position in strategy.segments:
            where &= self._hold(self.snapshot.segments[position].conditions)
        if strategy.mode is Mode.ONLY_SDK:
            yield where, ONE, None
            return
        undecidable = self._find_undecidable(strategy) if where else 0
        rollout = strategy.rollout
        for inside, share in [(where, ONE)] if rollout is None else self._find_inside(rollout):
            if certain := where & inside & ~undecidable:
                yield certain, share, True
            if unknown := where & inside & undecidable:
                yield unknown, share, None

    def _hold(self, conditions: Conditions) -> Mask:
        mask = self.table.everyone
        for constraint in conditions.constraints:
            if not mask:
                break
            mask &= self.table.holds(constraint, self._pairs[constraint.column])
        return mask

    def _find_undecidable(self, strategy: CompiledStrategy) -> Mask:
        """The contexts with a text for which only an SDK can tell whether a pattern matches."""
        matched = {
            self._pairs[constraint.column]
            for constraint in list_constraints(strategy, self.snapshot.segments)
            if constraint.operator == "REGEX"
        }
        mask = 0
        for pair in matched:
            mask |= self.table.test(self.table.column(pair), lambda value: value is UNDECIDABLE)
        return mask

    def _find_inside(self, rollout: Rollout) -> Iterator[tuple[Mask, Fraction]]:
        """The contexts inside a rollout, with the share of calls."""
        pair, limit = self._pairs[rollout.column], rollout.threshold
        without = self.table.without(pair)
        if without != self.table.everyone:
            yield self.table.within(pair, rollout.key, limit) & ~without, ONE
        if rollout.draws and limit > 0:
            yield without, Fraction(min(limit, 100), 100)

    def _split_by_variant(self, flag: CompiledFlag, path: Path, mask: Mask) -> Iterator[tuple[Shares, Mask]]:
        """The contexts on a path, split by their variants."""
        parts: list[tuple[Mask, dict[Answer, Fraction]]] = [(mask, {})]
        for index, share in path.passed:
            variants = None if index == NONE else flag.strategies[index].variants
            parts = _join(parts, self._pick_variants(flag.variants if variants is None else variants), share)
        if path.failed and not flag.strategies:
            parts = _join(parts, self._pick_variants(flag.variants), path.failed)
        elif path.failed:
            parts = [(part, add_share(answers, OFF, path.failed)) for part, answers in parts]
        if path.unknown:
            parts = [(part, add_share(answers, UNKNOWN, path.unknown)) for part, answers in parts]
        for part, answers in parts:
            yield sort_shares(answers), part

    def _pick_variants(self, variants: CompiledVariants | None) -> Picks:
        """The variant of each context."""
        everyone = self.table.everyone
        if variants is None:
            return [(everyone, ALWAYS_ON)]
        picks: Picks = []
        rest = everyone
        for index, position, expected, _ in variants.overrides:
            column = self.table.column(self._pairs[position])
            if hit := rest & self.table.test(column, expected.__contains__):
                picks.append((hit, ((_answer(variants, index), ONE),)))
                rest ^= hit
        if rest and not variants.total:
            picks.append((rest, ALWAYS_ON))
        elif rest:
            picks += [
                (part & rest, shares) for part, shares in self._split_by_weight(variants) if part & rest
            ]
        return picks

    def _split_by_weight(self, variants: CompiledVariants) -> Iterator[tuple[Mask, Shares]]:
        pair, limits, total = self._pairs[variants.column], variants.limits, variants.total
        without = self.table.without(pair)
        if without != self.table.everyone:
            for index, part in self.table.shares(pair, variants.key, limits):
                yield part & ~without, ((_answer(variants, index), ONE),)
        weights = map(sub, limits, (0, *limits))
        yield (
            without,
            tuple(
                (_answer(variants, index), Fraction(weight, total))
                for index, weight in enumerate(weights)
                if weight
            ),
        )

    def _apply_parents(self, flag: CompiledFlag, alone: dict[Shares, Mask]) -> dict[Shares, Mask]:
        results: dict[Shares, Mask] = defaultdict(int)
        parted = self._evaluate_parents(flag.parents)
        for shares, mask in alone.items():
            for (met, unknown), where in parted.items():
                if part := mask & where:
                    results[apply_parents(shares, met, unknown)] |= part
        return dict(results)

    def _evaluate_parents(self, parents: tuple[Parent, ...]) -> dict[Met, Mask]:
        """The contexts by the share of calls on which every parent is in the required state, and on which only an SDK
        can tell. SDKs evaluate a parent for each dependency, so the random results are independent.
        """
        masks: dict[Met, Mask] = {(ONE, ZERO): self.table.everyone}
        for parent in parents:
            flag = self.flag(parent.name)
            if flag is None or flag.parents:
                return {(ZERO, ZERO): self.table.everyone}
            masks = _combine(masks, self._evaluate_parent(flag, parent))
        return masks

    def _evaluate_parent(self, flag: CompiledFlag, parent: Parent) -> dict[Met, Mask]:
        """The same for one parent. SDKs first check whether it is on, then evaluate it again for its variant."""
        switched: dict[Met, Mask] = defaultdict(int)
        for shares, where in self._evaluate_without_parents(flag).items():
            switched[share_switched(shares, parent.enabled)] |= where
        if not parent.variants or not flag.enabled or flag.fault is not None:
            return switched
        with_variant: dict[Met, Mask] = defaultdict(int)
        for shares, where in self._draw_again(flag).items():
            with_variant[share_with_variant(shares, parent.variants)] |= where
        return _combine(switched, with_variant)

    def _draw_again(self, flag: CompiledFlag) -> dict[Shares, Mask]:
        """The variants of a flag that is on, with redrawn strategies: if none passes, its own variants."""
        if flag.name not in self._again:
            results: dict[Shares, Mask] = defaultdict(int)
            for path, mask in self._find_paths(flag.strategies).items():
                without = path._replace(passed=(*path.passed, (NONE, path.failed)), failed=ZERO)
                for shares, part in self._split_by_variant(flag, without, mask):
                    results[shares] |= part
            self._again[flag.name] = results
        return self._again[flag.name]


def _combine(some: dict[Met, Mask], others: dict[Met, Mask]) -> dict[Met, Mask]:
    combined: dict[Met, Mask] = defaultdict(int)
    for some_met, where in some.items():
        for other_met, other_where in others.items():
            if part := where & other_where:
                combined[combine_met(some_met, other_met)] |= part
    return combined


def _answer(variants: CompiledVariants, index: int) -> Answer:
    return Answer(State.ON, variants.names[index], variants.payload(index))


def _join(
    parts: list[tuple[Mask, dict[Answer, Fraction]]], picks: Picks, share: Fraction
) -> list[tuple[Mask, dict[Answer, Fraction]]]:
    joined = []
    for mask, earlier in parts:
        for where, answers in picks:
            if part := mask & where:
                combined = dict(earlier)
                for answer, weight in answers:
                    add_share(combined, answer, share * weight)
                joined.append((part, combined))
    return joined
