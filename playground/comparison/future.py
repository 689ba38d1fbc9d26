"""Forecasts the flags at a moment ahead: an app above knows of scheduled changes."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from flagadmin.core.hook import Hook
from projects.history.definitions_at import Changed


class Forecast(NamedTuple):
    """The future differences in an environment, and a sentence about each change of it until then."""

    changed: Changed
    notes: Sequence[str] = ()


forecast: Hook[[Collection[str], str, datetime], Forecast] = Hook(
    lambda projects, environment, at: Forecast(Changed(frozenset(), [], {}, frozenset()))
)
"""Of projects, an environment and a moment. It only reads."""
