"""Finds when a milestone may start automatically."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from releases.templates.rules import get_zone

Transition = Mapping[str, Any]


def find_opening(transition: Transition, since: datetime) -> datetime:
    """The first moment at which the next milestone may start, if the one before has been active since then."""
    return _open_from(transition, since + timedelta(minutes=transition.get("intervalMinutes") or 0))


def find_next_opening(transition: Transition, since: datetime, now: datetime) -> datetime:
    """The same, but not before now: windows that have passed were missed."""
    return _open_from(transition, max(now, find_opening(transition, since)))


def _open_from(transition: Transition, moment: datetime) -> datetime:
    """The first moment from then on that is in the window, if there is one."""
    window = transition.get("window")
    if window is None:
        return moment
    zone = get_zone(window)
    local = moment.astimezone(zone)
    for days in range(15):  # the only day of a week may have no such time, as clocks go forward
        day = local.date() + timedelta(days=days)
        begin, end = _find_bounds(window, day, zone)
        if day.isoweekday() in window["days"] and begin < end and end > moment:
            return max(moment, begin)
    raise AssertionError("a window has at least one day of the week")


def _find_bounds(window: Mapping[str, Any], day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """When the window opens and closes that day. Where clocks leave out one of these times, not outside of them."""
    begins, ends = time.fromisoformat(window["from"]), time.fromisoformat(window["to"])
    closings = (datetime.combine(day, ends.replace(fold=fold), zone) for fold in (0, 1))
    return datetime.combine(day, begins, zone).astimezone(UTC), min(each.astimezone(UTC) for each in closings)


def is_open(window: Mapping[str, Any], moment: datetime) -> bool:
    return _open_from({"window": window}, moment) == moment
