"""Reads the forms of release plans: steps, and conditions of the next one."""

from collections.abc import Mapping
from typing import Any

from flagadmin.core.errors import ValidationError, clip
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT, read_percentage
from releases.plans.actions import Steps
from releases.safeguards.forms import read_safeguard
from releases.templates.actions import is_zone

KEEP = "keep"
"""Keeps the condition of the next milestone."""
OFFERED = (5, 15, 25, 50, 75)
FAR = 20  # percent that are taken in four steps; fewer in two
ROLLOUTS = ("5, 25, 50, 100", "10, 50, 100", "1, 5, 25, 50, 100", "25, 50, 100")
INTERVALS = (
    ("60", "1 hour"),
    ("360", "6 hours"),
    ("1440", "24 hours"),
    ("4320", "3 days"),
    ("10080", "7 days"),
)
WINDOWS = (("", "Any time"), ("1-4", "Mon to Thu, 09:00–16:00"), ("1-5", "Mon to Fri, 09:00–16:00"))
"""The times are in the form's time zone."""


def list_steps(present: int, target: int) -> list[int]:
    """The percentages that forms offer from one to the other, up or down; from 0 if both are the same."""
    if target < present:
        return [*reversed(list_steps(target, present)[:-1]), target]
    present = 0 if present == target else present
    between = [share for share in OFFERED if present < share < target]
    if not between or between[0] - present > (target - present) / 2:
        parts = 4 if target - present >= FAR else 2
        between = [present + (target - present) * part // parts for part in range(1, parts)]
    return [*(share for share in between if present < share), target]


def find_share(strategy: Mapping[str, Any]) -> int:
    """Finds the percentage of a gradual rollout: 100 for a strategy that is on for everyone, 0 for other types."""
    if strategy.get("name") != FLEXIBLE_ROLLOUT:
        return 100 if strategy.get("name") == "default" else 0
    return read_percentage(str(strategy["parameters"].get("rollout", ""))) or 0


def read_steps(form: Mapping[str, str], strategy: Mapping[str, Any]) -> Steps:
    """Raises ValidationError."""
    rollouts, transition = read_rollouts(form.get("rollouts", "")), read_transition(form)
    return Steps(strategy, rollouts, transition, "pause_if_broken" in form)


def read_rollouts(text: str) -> list[int]:
    try:
        return [int(part) for part in text.replace("→", ",").replace("%", "").split(",")]
    except ValueError:
        raise ValidationError.at("rollouts", "must be numbers, such as 5, 25, 50, 100") from None


Transition = Mapping[str, Any] | None


def read_transition(form: Mapping[str, str], stored: Transition = None) -> dict[str, Any] | None:
    """Reads the condition of the next milestone; None to start it by hand, for which forms send an empty interval.

    With ``keep`` as interval or window, keeps the stored one. Raises ValidationError.
    """
    interval, kept = form.get("interval"), stored or {}
    if interval == "" and stored is not None:
        return None
    minutes = kept.get("intervalMinutes") if interval == KEEP else _read_minutes(interval or "")
    window = kept.get("window") if form.get("window") == KEEP else _read_window(form)
    parts = {"intervalMinutes": minutes, "window": window}
    return {name: value for name, value in parts.items() if value is not None} or None


def _read_minutes(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 6:
        raise ValidationError.at("interval", "must be minutes")
    return int(text)


def _read_window(form: Mapping[str, str]) -> dict[str, Any] | None:
    if not (window := form.get("window", "")):
        return None
    zone = form.get("zone", "") or "UTC"
    days = [1, 2, 3, 4] if window == "1-4" else [1, 2, 3, 4, 5]
    if not is_zone(zone):
        raise ValidationError.at("zone", f"Enter a time zone such as Europe/Oslo, not {clip(zone, 64)}.")
    return {"zone": zone, "days": days, "from": "09:00", "to": "16:00"}


PAUSE = "pause_"
"""Begins the names of the fields of a plan's first safeguard."""


def read_pause(form: Mapping[str, str]) -> dict[str, Any] | None:
    """The initial safeguard of a plan, if the form names a metric. Raises ValidationError."""
    fields = {name.removeprefix(PAUSE): form[name].strip() for name in form if name.startswith(PAUSE)}
    if not (metric := fields.get("metric")):
        return None
    if not fields.get("threshold"):
        raise ValidationError.at(f"{PAUSE}threshold", f"Enter the limit at which {metric} pauses the plan.")
    return read_safeguard(fields)
