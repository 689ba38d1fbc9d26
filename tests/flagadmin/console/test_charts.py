"""Charts have the right proportions, and tables with their numbers."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from django.template import Context, Template

from flagadmin.core.lists.charts import (
    SPARK_HEIGHT,
    SPARK_WIDTH,
    format_percent,
    make_line_bars,
    make_slices,
    make_sparkline,
    make_variant_split,
)

START = datetime(2026, 11, 21, 13, tzinfo=UTC)


@dataclass
class Hour:
    at: datetime
    yes: int
    no: int


def hours(*counts: tuple[int, int]) -> list[Hour]:
    return [Hour(START + timedelta(hours=i), yes, no) for i, (yes, no) in enumerate(counts)]


def rendered(text: str, **context: object) -> str:
    return Template("{% load charts %}" + text).render(Context(context))


def test_the_highest_hour_fills_the_height_and_the_others_are_in_proportion() -> None:
    full, half, none = make_sparkline(hours((100, 0), (0, 50), (0, 0))).bars
    assert (full.yes_y, full.yes_height, full.no_height) == (0, SPARK_HEIGHT, 0)
    assert (half.no_y, half.no_height) == (SPARK_HEIGHT / 2, SPARK_HEIGHT / 2)
    assert (none.yes_height, none.no_height) == (0, 0)


@pytest.mark.parametrize("count", [(1, 1), (1_000_000, 1), (1, 1_000_000), (7, 12)])
def test_bars_stay_inside_and_on_and_off_are_both_visible(count: tuple[int, int]) -> None:
    (bar,) = make_sparkline(hours(count)).bars
    assert bar.no_y >= 0
    assert bar.yes_height > 0
    assert bar.no_height > 0
    assert bar.no_y + bar.no_height <= bar.yes_y
    assert bar.yes_y + bar.yes_height <= SPARK_HEIGHT + 0.1


@pytest.mark.parametrize("number", [24, 30])
def test_bars_fill_the_width(number: int) -> None:
    last = make_sparkline(hours(*[(1, 0)] * number)).bars[-1]
    assert last.x + last.width == pytest.approx(SPARK_WIDTH, abs=0.2)


def test_the_evaluation_chart_has_a_name_and_a_table() -> None:
    page = rendered("{% evaluation_chart hours 'Last 24 hours' %}", hours=hours((1200, 30), (0, 0)))
    assert 'role="img" aria-labelledby="chart-last-24-hours"' in page
    assert '<title id="chart-last-24-hours">Last 24 hours: 1,230, of which 1,200 on</title>' in page
    assert "21 Nov 2026, 13:00 UTC</time></th><td>1,200</td><td>30</td>" in page
    assert "21 Nov 2026, 14:00" not in page
    assert "style=" not in page


def test_the_chart_by_day_names_days() -> None:
    page = rendered("{% evaluation_chart hours 'Last 30 days' unit='day' %}", hours=hours((1, 0)))
    assert '<th scope="row">21 Nov 2026</th>' in page


@pytest.mark.parametrize(
    ("percent", "width"), [(50, "50%"), (33.3, "33.3%"), (120, "100%"), (-1, None), (0, None), (None, None)]
)
def test_the_share_bar_is_as_wide_as_its_share(percent: float | None, width: str | None) -> None:
    page = rendered("{% share_bar percent %}", percent=percent)
    if width is None and percent != -1:
        assert 'class="y"' not in page
    else:
        assert f'class="y" width="{width or "0%"}"' in page


def test_variants_as_configured_and_as_measured() -> None:
    split = make_variant_split({"blue": 500, "green": 500}, {"blue": 30, "green": 60, "gone": 10})
    assert [(part.name, part.width) for part in split.configured] == [
        ("blue", "50.00%"),
        ("green", "50.00%"),
        ("gone", "0.00%"),
    ]
    assert split.rows == [
        ("blue", "50 %", "30 %", 30),
        ("green", "50 %", "60 %", 60),
        ("gone", "–", "10 %", 10),
    ]
    assert split.total == 100


def test_variants_that_nobody_reported_are_not_measured() -> None:
    split = make_variant_split({"blue": 1000}, {})
    assert split.measured == []
    assert split.rows == [("blue", "100 %", "–", 0)]


def test_a_variant_has_the_same_color_in_both_bars_and_in_the_table() -> None:
    page = rendered(
        "{% variant_split_chart weights measured 'Variants' %}",
        weights={"blue": 500, "green": 500},
        measured={"green": 1},
    )
    assert page.count('class="v2"') == 3
    assert "<td" in page
    assert "style=" not in page


def test_slices_of_nothing_have_no_width() -> None:
    assert [part.width for part in make_slices({"a": 0, "b": 0})] == ["0.00%", "0.00%"]


def test_versions_have_bars_of_all_instances_and_the_oldest_is_marked() -> None:
    bars = make_line_bars([("6.1.2", 12, False), ("3.9.0", 3, True)])
    assert [(bar.width, bar.percent) for bar in bars] == [("80.00%", "80 %"), ("20.00%", "20 %")]
    page = rendered("{% adoption_chart rows 'Node SDK' %}", rows=[("6.1.2", 1200, False), ("3.9.0", 3, True)])
    assert "oldest" in page.split("3.9.0")[1]
    assert "oldest" not in page.split("3.9.0")[0]
    assert "1,200" in page
    assert "<a" not in page


def test_numbers_of_versions_lead_to_a_list() -> None:
    rows = [("6.1.2", 1200, False), ("3 more", 3, False)]
    page = rendered("{% adoption_chart rows 'node sdk' '/x/?q=' %}", rows=rows)
    assert '<a href="/x/?q=node%20sdk%3A6.1.2">1,200</a>' in page
    assert page.count("<a ") == 1


@pytest.mark.parametrize(
    ("percent", "text"),
    [
        (0, "0 %"),
        (50, "50 %"),
        (33.333, "33.3 %"),
        (0.01, "< 0.1 %"),
        (99.99, "> 99.9 %"),
        (100, "100 %"),
    ],
)
def test_percentages_are_rounded_but_never_to_nothing_or_everything(percent: float, text: str) -> None:
    assert format_percent(percent) == text
