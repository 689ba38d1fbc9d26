"""Each fault of an experiment is named by its check."""

from __future__ import annotations

import numpy as np

from playground.outcomes.experiment import BEFORE, Measure, Phase
from tests.playground.outcomes.experiment.tables import (
    DAY,
    HALVES,
    START,
    analyse_rows,
    analyse_units,
    design,
    states,
    write,
)

RANDOM = np.random.default_rng(7)
SIDE = RANDOM.permutation(np.arange(2_000) % 2)
BOUGHT = (RANDOM.random(2_000) < 0.3).astype(float)


def test_a_sound_experiment_passes() -> None:
    found = analyse_units(design(), SIDE, bought=BOUGHT)
    assert states(found) == {
        "shares": "passed",
        "units": "passed",
        "before": "skipped",
        "crossovers": "passed",
        "left out": "passed",
    }
    assert found.sentence == found.comparisons[0].sentence
    assert "shows no difference between on and off" in found.sentence


def test_a_difference_before_the_start() -> None:
    rows = [(str(unit), ("off", "on")[side], day) for unit, side in enumerate(SIDE) for day in (-2, 2)]
    for lift, state in ((0, "passed"), (0.3, "failed")):
        values = np.repeat(BOUGHT, 2)
        values[::2] = RANDOM.random(2_000) < 0.3 + lift * SIDE
        found = analyse_rows(design(), rows, bought=write(values))
        assert states(found)["before"] == state
        assert ("Do not use this result. bought of off and on differed before" in found.sentence) == bool(
            lift
        )


def test_a_covariate_that_the_variant_changed() -> None:
    for change, state in ((0, "passed"), (2, "failed")):
        measure = Measure("bought", "proportion", "bought", covariate="visits")
        visits = RANDOM.poisson(5, 2_000) + change * SIDE
        found = analyse_units(design(measure), SIDE, bought=BOUGHT, visits=visits)
        assert states(found)["covariate"] == state


def test_a_covariate_from_before_is_not_called_changed() -> None:
    found = analyse_units(
        design(Measure("bought", "proportion", "bought", covariate=BEFORE)), SIDE, bought=BOUGHT
    )
    assert "covariate" not in states(found)


def test_too_few_units() -> None:
    few = analyse_units(design(), SIDE[:80], bought=BOUGHT[:80])
    assert states(few)["units"] == "warning"
    assert "fewer than 100 units" in next(check.sentence for check in few.checks if check.name == "units")
    rare = analyse_units(design(), SIDE, bought=(np.arange(2_000) < 9).astype(float))
    assert [check.measure for check in rare.checks if check.name == "units"] == ["bought"]


def test_a_side_that_nobody_should_have_had() -> None:
    found = analyse_units(design(phases=(Phase(START, {"off": 1, "on": 0}),)), SIDE, bought=BOUGHT)
    assert states(found)["shares"] == "failed"


def test_shares_that_are_not_known_are_not_compared() -> None:
    found = analyse_units(design(phases=(Phase(START, None),)), SIDE, bought=BOUGHT)
    assert states(found)["shares"] == "skipped"
    assert [(seen.set, seen.p) for seen in found.shares] == [(None, None)]


def test_other_flags_that_divide_the_same_units_are_listed() -> None:
    found = analyse_units(design(interacting=("dark-theme", "one-click-pay")), SIDE, bought=BOUGHT)
    [note] = [check for check in found.checks if check.name == "interaction"]
    assert note.state == "note"
    assert "dark-theme, one-click-pay" in note.sentence


def test_sentences_give_the_direction_and_the_interval() -> None:
    bought = (RANDOM.random(2_000) < 0.3 + 0.3 * (1 - SIDE)).astype(float)
    found = analyse_units(design(phases=HALVES, method="fixed"), SIDE, bought=bought)
    [comparison] = found.comparisons
    low, high = (
        f"−{-100 * end:.1f} %" for end in (comparison.lift_interval.low, comparison.lift_interval.high)
    )
    expected = f"bought is {-100 * comparison.lift:.1f} % lower with on than with off ({low} to {high})."
    assert found.sentence == comparison.sentence == expected


def test_units_are_not_left_out_for_what_a_change_of_shares_did_to_them() -> None:
    """On for 10 %, then for 50 %: those of off who come back are on then, and leaving them out leaves the idle."""
    random = np.random.default_rng(11)
    rows = [
        (str(unit), "on" if bucket < (0.1 if day < 15 else 0.5) else "off", float(day))
        for unit, bucket in enumerate(random.random(3_000))
        for day in 30 * random.random(1 + random.poisson(2))
    ]
    phases = (Phase(START, {"off": 9, "on": 1}), Phase(START + 15 * DAY, {"off": 1, "on": 1}))
    visits = Measure("visits", "mean", "visit")
    kept, left = (
        analyse_rows(
            design(visits, phases=phases, method="fixed", crossovers=choice), rows, visit=["1"] * len(rows)
        )
        for choice in ("keep", "leave out")
    )
    assert states(kept)["shares"] == "passed"
    assert not kept.comparisons[0].is_significant
    assert states(left)["shares"] == "failed"
    assert left.comparisons[0].is_significant  # but wrong
