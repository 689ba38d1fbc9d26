"""When a window of the week is open, also on the days on which clocks are changed."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from releases.plans.steps import find_opening, is_open

FORWARD, BACK = "2027-03-28", "2026-10-25"
"""Sundays: at 01:00 UTC clocks of Oslo go from 02:00 to 03:00, or from 03:00 to 02:00."""
ANY_DAY = [1, 2, 3, 4, 5, 6, 7]


def window(begins: str, ends: str, days: Any = ANY_DAY) -> dict[str, Any]:
    return {"zone": "Europe/Oslo", "days": days, "from": begins, "to": ends}


def minutes_of(day: str) -> list[datetime]:
    midnight = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo("Europe/Oslo")).astimezone(UTC)
    return [midnight + timedelta(minutes=number) for number in range(23 * 60)]


@pytest.mark.parametrize("day", [FORWARD, BACK, "2026-11-24"])
@pytest.mark.parametrize(
    "times",
    [("09:00", "16:00"), ("01:00", "02:30"), ("02:15", "02:45"), ("02:30", "05:00"), ("02:00", "03:00")],
)
def test_it_is_not_open_at_other_times(day: str, times: tuple[str, str]) -> None:
    hours = window(*times)
    for moment in minutes_of(day):
        clock = f"{moment.astimezone(ZoneInfo('Europe/Oslo')):%H:%M}"
        if is_open(hours, moment) and (day != BACK or not "02:00" <= clock < "03:00"):
            assert times[0] <= clock < times[1], moment


@pytest.mark.parametrize(
    ("times", "opens", "closes"),
    [
        (("02:30", "03:30"), "01:00", "01:30"),
        (("02:30", "04:00"), "01:00", "02:00"),
        (("01:30", "02:30"), "00:30", "01:00"),
        (("00:30", "05:00"), "23:30", "03:00"),
        (("03:00", "04:00"), "01:00", "02:00"),
    ],
)
def test_a_window_that_begins_or_ends_in_the_hour_that_clocks_skip(
    times: tuple[str, str], opens: str, closes: str
) -> None:
    open_at = [f"{moment:%H:%M}" for moment in minutes_of(FORWARD) if is_open(window(*times), moment)]
    closed_again = datetime.fromisoformat(f"{FORWARD}T{open_at[-1]}:00+00:00") + timedelta(minutes=1)
    assert (open_at[0], f"{closed_again:%H:%M}") == (opens, closes)


def test_a_day_without_such_a_time_is_left_out() -> None:
    evening_before = datetime.fromisoformat("2027-03-27T20:00:00+00:00")
    nightly = {"window": window("02:15", "02:45")}
    assert find_opening(nightly, evening_before) == datetime.fromisoformat("2027-03-29T00:15:00+00:00")
    sundays = {"window": window("02:15", "02:45", [7])}
    since = datetime.fromisoformat("2027-03-21T12:00:00+00:00")
    assert find_opening(sundays, since) == datetime.fromisoformat("2027-04-04T00:15:00+00:00")
