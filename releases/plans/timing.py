"""Finds when a milestone may start automatically."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from releases.templates.rules import get_zone

Transition = Mapping[str, Any]


def find_opening(transition: Transition, since: datetime) -> datetime:
    """The earliest start of the next milestone, if the previous one has been active since then."""
    return _open_from(transition, since + timedelta(minutes=transition.get("intervalMinutes") or 0))


def find_next_opening(transition: Transition, since: datetime, now: datetime) -> datetime:
    """The same, but not before now: past windows were missed."""
    return _open_from(transition, max(now, find_opening(transition, since)))


def _open_from(transition: Transition, moment: datetime) -> datetime:
    """The first moment from then on within the window, if there is one."""
    window = transition.get("window")
    if window is None:
        return moment
    zone = get_zone(window)
    local = moment.astimezone(zone)
    for days in range(15):  # the only day of a week may lack this time, because clocks go forward
        day = local.date() + timedelta(days=days)
        begin, end = _find_bounds(window, day, zone)
        if day.isoweekday() in window["days"] and begin < end and end > moment:
            return max(moment, begin)
    raise AssertionError("a window has at least one day of the week")


def _find_bounds(window: Mapping[str, Any], day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The opening and closing times of the window on that day."""
    begin, end = (
        find_moment(datetime.combine(day, time.fromisoformat(window[name])), zone) for name in ("from", "to")
    )
    return begin, end


def find_moment(local: datetime, zone: ZoneInfo) -> datetime:
    """The moment, in UTC, at which clocks first show a local time, or skip it when they go forward."""
    later, earlier = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if earlier >= later:  # clocks show it, perhaps twice
        return later
    offset = earlier.astimezone(zone).utcoffset()
    while later - earlier > timedelta(seconds=1):
        middle = earlier + (later - earlier) / 2
        if middle.astimezone(zone).utcoffset() == offset:
            earlier = middle
        else:
            later = middle
    return later.replace(microsecond=0)


def is_open(window: Mapping[str, Any], moment: datetime) -> bool:
    return _open_from({"window": window}, moment) == moment
