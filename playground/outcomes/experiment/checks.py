"""Whether a result can be believed, before anybody looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from scipy import stats

from playground.outcomes.experiment.design import BEFORE, Design
from playground.outcomes.experiment.estimate import Estimate, Terms, holm
from playground.outcomes.experiment.result import Check, CheckName, Counts, SharesSeen, State
from playground.outcomes.experiment.units import NUMERATOR, Floats, Ints, Units
from playground.outcomes.statistics import format_p

MISMATCH = 0.001
"""A. Fabijan et al., Diagnosing Sample Ratio Mismatch, KDD 2019: one looks often, and mismatches are rare."""
UNCHANGED = Terms("fixed", alpha=0.001, tuning=5_000, power=0.8)
"""Of values that a side cannot have changed."""
MANY = 0.05
FEW_UNITS, FEW_OF_A_KIND = 100, 10

Compare = Callable[[Mapping[str, Floats], Terms], list[Estimate]]


@dataclass
class Checker:
    """``sides``: of each unit the place in ``names``. ``values``: those of the measures. ``compare``: all units."""

    design: Design
    units: Units
    names: Sequence[str]
    sides: Ints
    counts: Counts
    values: Sequence[Mapping[str, Floats]]
    compare: Compare

    def check_all(self) -> Iterator[Check]:
        yield self._check_shares()
        yield from self._check_units()
        yield from self._check_before()
        yield self._check_crossovers()
        yield from self._check_covariates()
        yield self._check_left_out()
        yield from self._note_phases()
        yield from self._note_interactions()

    def find_shares(self) -> Iterator[SharesSeen]:
        """Of each phase in the period."""
        phases = self.design.phases
        for place, phase in enumerate(phases):
            later = phases[place + 1].start if place + 1 < len(phases) else self.design.end
            if phase.start >= self.design.end or later <= self.design.start:
                continue
            numbers = np.bincount(self.sides[self.units.phase == place], minlength=len(self.names))
            units = {name: int(number) for name, number in zip(self.names, numbers, strict=True)}
            total = sum(units.values())
            *_, p = _compare_shares(phase.shares, units)
            weight = sum((phase.shares or {}).values())
            yield SharesSeen(
                max(phase.start, self.design.start),
                None
                if phase.shares is None
                else {name: phase.shares.get(name, 0) / weight for name in self.names},
                {name: number / total if total else 0.0 for name, number in units.items()},
                units,
                p,
            )

    def _check_shares(self) -> Check:
        found = [(seen, *_compare_shares(seen.set, seen.units)) for seen in self.find_shares()]
        known = [(seen, squares, freedom) for seen, squares, freedom, p in found if p is not None]
        if not known:
            return Check(
                "shares",
                "skipped",
                "Shares cannot be compared: the configured shares are unknown, or there are no units.",
            )
        p = float(
            stats.chi2.sf(sum(squares for _, squares, _ in known), sum(freedom for *_, freedom in known))
        )
        seen = max(known, key=lambda each: each[1])[0]
        set_, worst = (
            seen.set or {},
            max(self.names, key=lambda name: abs(seen.seen[name] - (seen.set or {})[name])),
        )
        total = sum(seen.units.values())
        told = f"{_share(seen.seen[worst])} of {total:,} units had {worst}, and {_share(set_[worst])} was set"
        if p >= MISMATCH:
            return Check("shares", "passed", f"The shares fit: {told} ({_say(p)}).", p)
        return Check(
            "shares",
            "failed",
            f"The shares do not fit: {told} ({_say(p)}). Something removes units of one side or adds some, such as"
            " missing rows or robots. Find the cause before you use the result.",
            p,
        )

    def _check_units(self) -> Iterator[Check]:
        if not self.counts.units:
            told = "There are no units to compare"
            if self.design.exposure is not None and not self.units.had_side:
                told += f": no row with a side has 1 or true in {self.design.exposure}"
            yield Check("units", "failed", f"{told}.")
            return
        numbers = np.bincount(self.sides, minlength=len(self.names))
        few = [name for name, number in zip(self.names, numbers, strict=True) if number < FEW_UNITS]
        if few or len(self.names) < 2:
            least = int(numbers.min())
            state: State = "failed" if least < 2 or len(self.names) < 2 else "warning"
            told = (
                f"{' and '.join(few)} had fewer than {FEW_UNITS} units"
                if few
                else "All units had the same side"
            )
            yield Check("units", state, f"{told}: too few for the result to be reliable.")
        sparse = []
        for measure, values in zip(self.design.measures, self.values, strict=True):
            if measure.kind == "proportion" and not few:
                yes = np.bincount(self.sides, values[NUMERATOR], len(self.names))
                if np.minimum(yes, numbers - yes).min() < FEW_OF_A_KIND:
                    sparse.append(measure.name)
                    told = f"One side has fewer than {FEW_OF_A_KIND} units with, or without, {measure.name}"
                    yield Check(
                        "units", "warning", f"{told}: too few for its interval.", measure=measure.name
                    )
        if not few and not sparse and len(self.names) > 1:
            yield Check("units", "passed", f"{self.counts.units:,} units are enough to compare.")

    def _check_before(self) -> Iterator[Check]:
        if not self.units.has_before:
            told = "The table has no rows from before the start, so that it is not known if sides differed before."
            yield Check("before", "skipped", told)
            return
        values = {measure.name: self.units.values_before(measure) for measure in self.design.measures}
        yield from self._find_differences(
            "before",
            values,
            "differed before the start already: the flag is not the cause of all of the difference",
            "Before the start, sides did not differ.",
        )

    def _check_covariates(self) -> Iterator[Check]:
        values = {
            measure.name: {NUMERATOR: self.units.covariate(measure.covariate)}
            for measure in self.design.measures
            if measure.covariate not in (None, BEFORE)
        }
        if values:
            yield from self._find_differences(
                "covariate",
                values,
                "has a covariate that differs between sides: if the flag changed it, its result is wrong. Leave it out",
                "The covariates do not differ between sides.",
            )

    def _find_differences(
        self, name: CheckName, values: Mapping[str, Mapping[str, Floats]], fault: str, passed: str
    ) -> Iterator[Check]:
        found = [
            (measure, side, estimate.p)
            for measure, each in values.items()
            for side, estimate in zip(self.names[1:], self.compare(each, UNCHANGED), strict=True)
        ]
        adjusted = holm([p for *_, p in found])
        least = min((p for p in adjusted if p is not None), default=None)
        if least is None or least >= UNCHANGED.alpha:
            yield Check(name, "passed" if least is not None else "skipped", passed, least)
            return
        for (measure, side, _), p in zip(found, adjusted, strict=True):
            if p is not None and p < UNCHANGED.alpha:
                told = f"{measure} of {self.names[0]} and {side} {fault} ({_say(p)})."
                yield Check(name, "failed", told, p, measure, side)

    def _check_crossovers(self) -> Check:
        share = self.units.crossovers / max(1, self.units.had_side)
        told = f"{_share(share)} of units had more than one side in the period"
        if share <= MANY:
            return Check("crossovers", "passed", f"{told}.")
        kept = "They count for their first, which makes differences smaller"
        if self.design.crossovers == "leave out":
            kept = "They are left out, which can favor one side"
        return Check("crossovers", "warning", f"{told}. {kept}.")

    def _check_left_out(self) -> Check:
        share = self.counts.rows_left_out / max(1, self.counts.rows)
        told = f"{_share(share)} of rows say nothing about the side of their unit"
        if share <= MANY:
            return Check("left out", "passed", f"{told}.")
        return Check(
            "left out", "warning", f"{told}, because it is unknown, random, or not decided by a split."
        )

    def _note_phases(self) -> Iterator[Check]:
        phases = [seen.start for seen in self.find_shares() if sum(seen.units.values())]
        if len(phases) > 1:
            told = (
                f"The shares changed in the period. Its {len(phases)} parts were analyzed apart and combined."
            )
            yield Check("phases", "note", told)

    def _note_interactions(self) -> Iterator[Check]:
        if self.design.interacting:
            names = ", ".join(self.design.interacting)
            told = f"Other flags divide the same units in the period: {names}. Their effects may depend on each other."
            yield Check("interaction", "note", told)


def _compare_shares(
    shares: Mapping[str, float] | None, units: Mapping[str, int]
) -> tuple[float, int, float | None]:
    """Chi-squared, its degrees of freedom, and p; None if there is nothing to compare."""
    total = sum(units.values())
    if shares is None or not total:
        return 0.0, 0, None
    weight = sum(shares.values())
    expected = {name: total * share / weight for name, share in shares.items() if share}
    if any(number and name not in expected for name, number in units.items()):
        return inf, 1, 0.0  # A side that nobody should have had.
    squares = sum((units.get(name, 0) - number) ** 2 / number for name, number in expected.items())
    freedom = len(expected) - 1
    return squares, freedom, float(stats.chi2.sf(squares, freedom)) if freedom else 1.0


def _say(p: float) -> str:
    text = format_p(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def _share(share: float) -> str:
    return f"{100 * share:.4g} %"
