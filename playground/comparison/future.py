"""Forecasts flags at a future moment, with a function of the app above that knows scheduled changes."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from flagadmin.core.hook import Hook
from projects.history.definitions_at import Changed


class Forecast(NamedTuple):
    """The future differences in an environment, and a sentence about each change until then."""

    changed: Changed
    notes: Sequence[str] = ()


forecast: Hook[[Collection[str], str, datetime], Forecast] = Hook(
    "playground.comparison.future.forecast",
    lambda projects, environment, at: Forecast(Changed(frozenset(), [], {}, frozenset())),
)
"""For projects, an environment and a moment. It only reads."""
