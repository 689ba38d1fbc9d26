"""Experiments of which the truth is known, with fixed seeds. Bounds are those of the binomial distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from playground.outcomes.experiment import Measure
from tests.playground.outcomes.experiment.tables import (
    BOUGHT,
    analyse_rows,
    analyse_units,
    design,
    states,
    write,
)

SPENT = Measure("spent", "mean", "spent")
FULL = pytest.mark.exhaustive


def find_false_alarms(seed: int) -> tuple[bool, bool]:
    """Whether an experiment without an effect shows one at a fixed horizon, and at any of 30 daily looks."""
    random = np.random.default_rng(seed)
    size = 3_000
    rows = [
        (str(unit), ("off", "on")[side], day)
        for unit, (side, day) in enumerate(
            zip(random.integers(0, 2, size), 30 * random.random(size), strict=True)
        )
    ]
    spent = write(random.gamma(0.5, 20, size))  # as skewed as money is
    [fixed] = analyse_rows(design(SPENT, method="fixed"), rows, spent=spent).comparisons
    [looks] = analyse_rows(design(SPENT), rows, spent=spent).comparisons
    assert len(looks.over_time) == 30
    return fixed.is_significant, any(
        point.interval.low > 0 or point.interval.high < 0 for point in looks.over_time
    )


@pytest.mark.parametrize("experiments", [20, pytest.param(1_000, marks=FULL)])
def test_false_alarms_are_as_rare_as_promised(experiments: int) -> None:
    fixed, looks = np.array([find_false_alarms(seed) for seed in range(experiments)]).sum(axis=0)
    assert binom.ppf(0.005, experiments, 0.05) <= fixed <= binom.ppf(0.995, experiments, 0.05)
    assert looks <= binom.ppf(0.99, experiments, 0.05)


@pytest.mark.parametrize("method", ["fixed", "sequential"])
@pytest.mark.parametrize("experiments", [20, pytest.param(500, marks=FULL)])
def test_a_lift_is_found_with_the_power_that_was_promised(experiments: int, method: str) -> None:
    """3 % of a mean, with as many units as make 3 % the smallest that is found with 80 %."""
    found, detectable, inside = 0, [], 0
    for seed in range(experiments):
        random = np.random.default_rng(seed)
        side = random.integers(0, 2, {"fixed": 5_580, "sequential": 11_050}[method])
        spent = random.gamma(6.25, 1.6, len(side)) * (1 + 0.03 * side)
        [comparison] = analyse_units(design(SPENT, method=method), side, spent=spent).comparisons
        found += comparison.is_significant
        inside += comparison.lift_interval.low <= 0.03 <= comparison.lift_interval.high
        detectable.append(comparison.detectable)
    assert np.mean(detectable) == pytest.approx(0.03, abs=0.0006)
    assert binom.ppf(0.005, experiments, 0.8) <= found <= binom.ppf(0.995, experiments, 0.8)
    assert inside >= binom.ppf(0.005, experiments, 0.95)


@pytest.mark.parametrize("experiments", [10, pytest.param(100, marks=FULL)])
def test_a_sample_ratio_mismatch_is_named(experiments: int) -> None:
    """One in nine units of a side is lost: halves become 47 % and 53 %."""
    named = alarms = 0
    for seed in range(experiments):
        random = np.random.default_rng(seed)
        side, bought = random.integers(0, 2, 11_000), random.random(11_000) < 0.1
        stays = (side == 0) | (random.random(11_000) >= 1 / 9)
        lost = analyse_units(design(BOUGHT), side[stays], bought=bought[stays])
        named += states(lost)["shares"] == "failed" and lost.sentence.startswith(
            "Do not use this result. The shares"
        )
        alarms += states(analyse_units(design(BOUGHT), side, bought=bought))["shares"] != "passed"
    assert named >= experiments * 0.99
    assert alarms <= binom.ppf(0.999, experiments, 0.001)
