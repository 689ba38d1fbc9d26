"""Forecasts the flags at a moment ahead: an app registers what knows of scheduled changes."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from projects.history.definitions_at import Changed


class Forecast(NamedTuple):
    """The future differences in an environment, and a sentence about each change of it until then."""

    changed: Changed
    notes: Sequence[str] = ()


Forecaster = Callable[[Collection[str], str, datetime], Forecast]
_forecasters: list[Forecaster] = []


def register(forecaster: Forecaster) -> None:
    """It is called with projects, an environment and a moment. It only reads."""
    _forecasters.append(forecaster)


def forecast(projects: Collection[str], environment: str, at: datetime) -> Forecast:
    for forecaster in _forecasters:
        return forecaster(projects, environment, at)
    return Forecast(Changed(frozenset(), [], {}, frozenset()))
