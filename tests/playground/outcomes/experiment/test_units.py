"""What of the rows counts for whom."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from playground.outcomes import experiment
from playground.outcomes.experiment import BEFORE, BadCell, ExtraMissing, Measure, Phase, to_document
from tests.playground.outcomes.experiment.tables import (
    BOUGHT,
    DAY,
    HALVES,
    START,
    analyse_rows,
    collect_rows,
    design,
    states,
)

SPENT = Measure("spent", "mean", "spent")
ORDER = Measure("order", "ratio", "spent")


def test_rows_of_a_unit_are_added_before_units_are_compared() -> None:
    rows = [
        ("a", "off", 1),
        ("a", "off", 2),
        ("b", "off", 1),
        ("c", "on", 1),
        ("c", "on", 1.5),
        ("d", "on", 3),
    ]
    cells = {"spent": ["10", "20", "", "5", "7.5", "0"], "bought": ["true", "false", "", "0", "1", "FALSE"]}
    bought, spent, order = analyse_rows(design(BOUGHT, SPENT, ORDER), rows, **cells).comparisons
    assert (bought.control_value.value, bought.side_value.value) == (0.5, 0.5)
    assert (spent.control_value.value, spent.side_value.value) == (15, 6.25)
    assert (order.control_value.value, order.side_value.value) == (15, pytest.approx(12.5 / 3))
    assert spent.difference == -8.75
    assert spent.lift == pytest.approx(-8.75 / 15)


def test_a_unit_belongs_to_its_first_side_whatever_the_order_of_rows() -> None:
    rows = [("a", "on", 9), ("a", "off", 1), ("b", "off", 2), ("c", "on", 3), ("d", "on", 4)]
    kept = analyse_rows(design(SPENT), rows, spent=["1", "2", "4", "8", "16"])
    assert [kept.comparisons[0].control_value.value, kept.comparisons[0].side_value.value] == [3.5, 12]
    assert (kept.counts.units, kept.counts.crossovers, states(kept)["crossovers"]) == (4, 1, "warning")
    rows.append(("e", "off", 5))
    left = analyse_rows(design(SPENT, crossovers="leave out"), rows, spent=["1", "2", "4", "8", "16", "6"])
    assert (left.counts.units, left.counts.crossovers) == (4, 1)
    assert [left.comparisons[0].control_value.value, left.comparisons[0].side_value.value] == [5, 12]


def test_units_count_from_their_first_exposed_row_with_all_that_follow() -> None:
    rows = [
        ("a", "off", 1),
        ("a", "off", 2),
        ("a", "off", 3),
        ("b", "off", 1),
        ("c", "off", 1),
        ("d", "on", 1),
        ("e", "on", 1),
    ]
    cells = {
        "spent": ["100", "1", "2", "50", "4", "8", "16"],
        "seen": ["", "1", "", "false", "true", "1", "1"],
    }
    found = analyse_rows(design(SPENT, exposure="seen"), rows, **cells)
    assert found.counts.units == 4
    assert [found.comparisons[0].control_value.value, found.comparisons[0].side_value.value] == [3.5, 12]


def test_rows_without_a_side_count_once_their_unit_has_one() -> None:
    rows = [
        ("a", None, 1),
        ("a", "off", 2),
        ("a", None, 3),
        ("b", "off", 1),
        ("c", "on", 1),
        ("d", "on", 1),
        ("e", None, 1),
        ("", "on", 1),
    ]
    found = analyse_rows(design(SPENT), rows, spent=["100", "1", "2", "5", "4", "8", "16", "32"])
    assert [found.comparisons[0].control_value.value, found.comparisons[0].side_value.value] == [4, 6]
    assert (found.counts.rows, found.counts.rows_left_out, found.counts.units) == (8, 4, 4)
    assert states(found)["left out"] == "warning"


def test_the_period_begins_at_its_start_and_excludes_its_end() -> None:
    rows = [
        ("a", "off", 0),
        ("a", "off", 30),
        ("a", None, -1),
        ("a", None, -9),
        ("b", "off", 29.9),
        ("c", "on", 1),
        ("d", "on", 1),
    ]
    found = analyse_rows(
        design(SPENT, before=START - 7 * DAY), rows, spent=["1", "2", "4", "8", "3", "1", "1"]
    )
    counts = found.counts
    assert (counts.rows, counts.rows_before, counts.rows_outside) == (4, 1, 2)
    assert found.comparisons[0].control_value.value == 2


def test_points_are_what_one_would_have_seen_that_day() -> None:
    rows = [("a", "off", 0), ("b", "off", 1), ("c", "on", 0.5), ("d", "on", 1.5), ("a", "off", 2.5)]
    spent = ["1", "3", "6", "4", "20"]
    [found] = analyse_rows(design(SPENT, end=START + 3 * DAY), rows, spent=spent).comparisons
    assert [(point.at, point.units, point.difference) for point in found.over_time] == [
        (START + DAY, 0, None),
        (START + 2 * DAY, 4, 3),
        (START + 3 * DAY, 4, -7),
    ]
    [year] = analyse_rows(design(SPENT, end=START + 365 * DAY), rows, spent=spent).comparisons
    assert len(year.over_time) <= 60
    assert year.over_time[-1].at == START + 365 * DAY


def test_phases_are_told_apart_by_the_first_row() -> None:
    phases = (*HALVES, Phase(START + 10 * DAY, {"off": 1, "on": 9}))
    rows = [(f"a{n}", side, 1) for n, side in enumerate(["off", "on"] * 100)]
    rows += [(f"b{n}", side, 12) for n, side in enumerate(["off", *["on"] * 9] * 40)]
    found = analyse_rows(design(phases=phases), rows, bought=[str(int(day < 10)) for *_, day in rows])
    assert [(seen.units, seen.p) for seen in found.shares] == [
        ({"off": 100, "on": 100}, 1),
        ({"off": 40, "on": 360}, 1),
    ]
    assert (states(found)["shares"], states(found)["phases"]) == ("passed", "note")
    [comparison] = found.comparisons
    assert comparison.strata == 2
    # Pooled, 71 % of off and 22 % of on bought: those of the first phase, who are more often off.
    assert comparison.difference == pytest.approx(0, abs=1e-12)


def test_breakdowns_have_the_largest_values_of_a_segment_and_all_others() -> None:
    rows = [(f"u{n}", ("off", "on")[n % 2], 1) for n in range(240)]
    country = [f"c{n // 20}" if n < 220 else "" for n in range(240)]
    cells = {"bought": ["1", "0", "0", "1"] * 60, "country": country}
    found = analyse_rows(design(segments=("country",)), rows, **cells)
    assert [each.value for each in found.breakdowns] == [*(f"c{n}" for n in range(10)), "(others)"]
    assert sum(each.units for each in found.breakdowns) == 240
    assert [each.comparisons[0].level for each in found.breakdowns] == pytest.approx([1 - 0.05 / 11] * 11)


@pytest.mark.parametrize("text", ["1,5", "nan", "inf", "yes", "-1e999"])
def test_a_cell_that_is_no_number_is_named(text: str) -> None:
    with pytest.raises(BadCell, match="must be a number") as caught:
        collect_rows(design(SPENT), [("a", "off", 1), ("b", "off", 1)], spent=["1", text])
    assert (caught.value.row, caught.value.column) == (1, "spent")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"end": START}, "start"),
        ({"phases": ()}, "phases"),
        ({"phases": (Phase(START + timedelta(1), None),)}, "phases"),
        ({"phases": (Phase(START, {"on": 0}),)}, "phases"),
        ({"segments": ("a", "b", "c", "d")}, "segments"),
        ({"alpha": 0.5}, "alpha"),
    ],
)
def test_an_unsound_design_is_refused(options: dict, named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}"):
        design(**options)


def test_an_empty_table_and_one_of_control_alone_are_analysed() -> None:
    for rows in ([], [("a", "off", 1), ("b", "off", 1)]):
        found = analyse_rows(design(SPENT, BOUGHT), rows, spent=["1"] * len(rows), bought=["1"] * len(rows))
        assert [each.difference for each in found.comparisons] == [None, None]
        assert states(found)["units"] == "failed"
        assert to_document(found)["comparisons"][0]["liftInterval"] == {"low": None, "high": None}


@pytest.mark.parametrize("crossovers", ["keep", "leave out"])
def test_without_an_exposed_row_there_are_no_units(crossovers: Any) -> None:
    plan = design(SPENT, BOUGHT, exposure="seen", crossovers=crossovers, segments=("country",))
    rows = [("a", "off", 1), ("b", "on", 1), ("a", "on", 2)]
    cells = {"spent": ["1"] * 3, "bought": ["1"] * 3, "seen": ["0", "", "false"], "country": ["NO"] * 3}
    found = analyse_rows(plan, rows, **cells)
    assert (found.counts.units, [each.difference for each in found.comparisons]) == (0, [None, None])
    assert [(check.state, check.sentence) for check in found.checks if check.name == "units"] == [
        ("failed", "There are no units to compare: no row with a side has 1 or true in seen.")
    ]


def test_covariates_may_be_missing_or_all_the_same() -> None:
    rows = [(f"u{n}", ("off", "on")[n % 2], 1) for n in range(8)]
    measures = Measure("a", "mean", "spent", covariate="age"), Measure("b", "mean", "spent", covariate=BEFORE)
    found = analyse_rows(design(*measures, SPENT), rows, spent=list("12345678"), age=[""] * 8).comparisons
    assert {each.difference for each in found} == {1}


def test_without_the_extra_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "find_spec", lambda name: None)
    with pytest.raises(ExtraMissing, match=r"pip install 'flagadmin\[experiments\]'"):
        experiment.collect(design())
