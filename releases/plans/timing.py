"""Finds when a milestone may start automatically."""

from collections.abc import Mapping
from datetime import datetime, time, timedelta
from typing import Any

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
    begins, ends = time.fromisoformat(window["from"]), time.fromisoformat(window["to"])
    local = moment.astimezone(zone)
    for days in range(8):
        day = local.date() + timedelta(days=days)
        end = datetime.combine(day, ends, zone)
        if day.isoweekday() in window["days"] and end > moment:
            return max(moment, datetime.combine(day, begins, zone).astimezone(moment.tzinfo))
    raise AssertionError("a window has at least one day of the week")


def is_open(window: Mapping[str, Any], moment: datetime) -> bool:
    return _open_from({"window": window}, moment) == moment
