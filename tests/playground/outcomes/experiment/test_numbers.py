"""The same numbers as tea-tasting gives for the same units, and as gbstats gave for sequential intervals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import tea_tasting as tt

from playground.outcomes.experiment import BEFORE, Comparison, Measure, Phase
from playground.outcomes.experiment.estimate import Part, Side, Terms, combine, compare, find_moments, holm
from tests.playground.outcomes.experiment.tables import HALVES, analyse_rows, analyse_units, design

SAME = {"rel": 1e-9, "abs": 1e-12}


def make_units(seed: int, size: int = 3_000) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    side = random.integers(0, 2, size)
    before = random.gamma(2, 5, size)
    visits = random.poisson(3, size) + 1
    bought = (random.random(size) < 0.2 + 0.03 * side).astype(float)
    spent = bought * (before + random.gamma(2, 4, size)) * (1 + 0.05 * side)
    return {"side": side, "before": before, "visits": visits, "bought": bought, "spent": spent}


def assert_same(found: Comparison, expected: tt.metrics.MeanResult) -> None:
    pairs = (
        (found.control_value.value, expected.control),
        (found.side_value.value, expected.treatment),
        (found.difference, expected.effect_size),
        (found.interval.low, expected.effect_size_ci_lower),
        (found.interval.high, expected.effect_size_ci_upper),
        (found.lift, expected.rel_effect_size),
        (found.lift_interval.low, expected.rel_effect_size_ci_lower),
        (found.lift_interval.high, expected.rel_effect_size_ci_upper),
        (found.p, expected.pvalue),
    )
    assert [ours for ours, _ in pairs] == pytest.approx([theirs for _, theirs in pairs], **SAME)


MEASURES = {
    "bought": (Measure("bought", "proportion", "bought"), tt.Mean("bought")),
    "spent": (Measure("spent", "mean", "spent"), tt.Mean("spent")),
    "adjusted": (Measure("adjusted", "mean", "spent", covariate="before"), tt.Mean("spent", "before")),
    "per visit": (Measure("per visit", "ratio", "spent", "visits"), tt.RatioOfMeans("spent", "visits")),
    "per visit adjusted": (
        Measure("per visit adjusted", "ratio", "spent", "visits", "before"),
        tt.RatioOfMeans("spent", "visits", "before"),
    ),
}


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_fixed_horizon_gives_the_numbers_of_tea_tasting(name: str, seed: int) -> None:
    units = make_units(seed)
    measure, theirs = MEASURES[name]
    expected = tt.Experiment({name: theirs}, variant="side").analyze(pa.table(units))[name]
    cells = {column: values for column, values in units.items() if column != "side"}
    analysis = analyse_units(design(measure, method="fixed"), units["side"], **cells)
    [found] = analysis.comparisons
    assert_same(found, expected)
    [ratio] = (check.p for check in analysis.checks if check.name == "shares")
    assert ratio == pytest.approx(
        tt.Experiment({"r": tt.SampleRatio(method="norm", correction=False)}, variant="side")
        .analyze(pa.table(units))["r"]
        .pvalue,
        **SAME,
    )


def test_a_covariate_from_the_rows_before_is_that_of_tea_tasting() -> None:
    units = make_units(4)
    rows, spent, visits = [], [], []
    for unit, side in enumerate(units["side"]):
        # What a unit spent is in two rows, before and after, which are added.
        for day, part, number in (
            (-3, 0.25, 1),
            (-2, 0.75, 1),
            (1, 0.5, 1),
            (2, 0.5, units["visits"][unit] - 1),
        ):
            rows.append((str(unit), ["off", "on"][side], day))
            spent.append(repr(float(part * units["before" if day < 0 else "spent"][unit])))
            visits.append(str(number))
    plan = design(Measure("per visit", "ratio", "spent", "visits", BEFORE), method="fixed")
    [found] = analyse_rows(plan, rows, spent=spent, visits=visits).comparisons
    table = pa.table({**units, "two": np.full(len(units["side"]), 2)})
    theirs = tt.RatioOfMeans("spent", "visits", "before", "two")
    assert_same(found, tt.Experiment({"per visit": theirs}, variant="side").analyze(table)["per visit"])


def test_several_sides_have_intervals_that_hold_together() -> None:
    random = np.random.default_rng(5)
    side, bought = random.integers(0, 3, 3_000), random.random(3_000) < 0.3
    phases = (Phase(HALVES[0].start, {"off": 1, "on": 1, "b": 1}),)
    found = analyse_units(design(phases=phases, method="fixed"), side, bought=bought).comparisons
    assert [each.side for each in found] == ["b", "on"]
    table = pa.table({"side": side, "bought": bought.astype(float)})
    theirs = tt.Experiment({"bought": tt.Mean("bought", confidence_level=0.975)}, variant="side").analyze(
        table, control=0, all_variants=True
    )
    for each, number in zip(found, (2, 1), strict=True):
        assert each.level == pytest.approx(0.975)
        assert_same(each, theirs[0, number]["bought"])


def test_sequential_intervals_are_those_of_gbstats() -> None:
    """gbstats 0.8.0 gave these for 1,000 of 10,000 against 1,111 of 10,100, and for means of 2 and 2.103."""
    shares = (
        Side((Part(0.1, 0.1 * 0.9 / 10_000, 10_000, 1),)),
        Side((Part(0.11, 0.11 * 0.89 / 10_100, 10_100, 1),)),
    )
    for tuning, alpha, low, high, p in (
        (5_000, 0.05, -0.0035226491211563862, 0.023522649121156376, 0.42882398660853915),
        (20_000, 0.05, -0.0031227707402957453, 0.023122770740295735, 0.2781704188964708),
        (5_000, 0.025, -0.004556734610064939, 0.02455673461006493, 0.4620058818308523),
    ):
        found = compare(*shares, Terms("sequential", alpha, tuning, 0.8))
        assert [found.interval.low, found.interval.high, found.p] == pytest.approx([low, high, p], **SAME)
    means = (
        Side((Part(2, (20_000 - 3_000 * 4) / 2_999 / 3_000, 3_000, 1),)),
        Side((Part(6_100 / 2_900, (21_500 - 6_100**2 / 2_900) / 2_899 / 2_900, 2_900, 1),)),
    )
    found = compare(*means, Terms("sequential", 0.05, 5_000, 0.8))
    assert [found.interval.low, found.interval.high, found.p] == pytest.approx(
        [-0.029609072498935518, 0.23650562422307342, 0.2596705432190466], **SAME
    )


def test_p_is_alpha_where_the_interval_ends_at_zero() -> None:
    for method in ("sequential", "fixed"):
        terms = Terms(method, 0.05, 5_000, 0.8)
        control, side = Side((Part(1, 0.01, 400, 1),)), Side((Part(1, 0.02, 600, 1),))
        reach = compare(control, side, terms).interval.high
        moved = compare(control, Side((Part(1 + reach, 0.02, 600, 1),)), terms)
        assert moved.p == pytest.approx(0.05)
        assert moved.interval.low == pytest.approx(0, abs=1e-12)


def test_phases_are_weighted_by_their_units_and_never_pooled() -> None:
    """Both phases show nothing: 10 % and 50 % on either side. Pooled, the side with more units in the second wins."""
    plan = [(0, 0, 90, 9), (0, 1, 10, 1), (1, 0, 100, 50), (1, 1, 900, 450)]
    side = np.concatenate([np.full(units, side) for _, side, units, _ in plan])
    phase = np.concatenate([np.full(units, phase) for phase, _, units, _ in plan])
    value = np.concatenate([np.arange(units) < yes for *_, units, yes in plan]).astype(float)
    off_1, off_2, on_1, on_2 = find_moments({"numerator": value}, side * 2 + phase, 4)
    control, other = combine([(off_1, on_1), (off_2, on_2)])
    weight = (100 / 1_100, 1_000 / 1_100)
    expected = weight[0] * 0.1 + weight[1] * 0.5
    assert [control.value, other.value] == pytest.approx([expected, expected])
    assert control.variance == pytest.approx(
        weight[0] ** 2 * 9 * 81 / 90 / 89 / 90 + weight[1] ** 2 * 25 / 99 / 100
    )
    pooled = compare(*combine([(off_1 + off_2, on_1 + on_2)]), Terms("fixed", 0.05, 5_000, 0.8))
    assert pooled.p < 0.001
    assert compare(control, other, Terms("fixed", 0.05, 5_000, 0.8)).p == pytest.approx(1)


def test_holm() -> None:
    # Holm's own example of four tests: multiplied by 4, 3, 2, 1, and never less than one before.
    assert holm([0.01, 0.04, None, 0.03, 0.005]) == [
        pytest.approx(p) if p else None for p in (0.03, 0.06, None, 0.06, 0.02)
    ]
