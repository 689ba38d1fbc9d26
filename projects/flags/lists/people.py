"""The share of people for whom a flag is on. The evaluation engine's app provides the measurement."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from flagadmin.core.hook import Hook

Place = tuple[str, str, str]
"""The project, the environment and the name of a flag."""


@dataclass(frozen=True, slots=True)
class People:
    """``on`` is the percentage of users for whom a flag is on, ``unknown`` that of users for whom only an SDK can tell.

    ``users`` is their number.
    """

    on: float
    unknown: float
    users: int
    depends_on_time: bool = False


def _measure_nobody(places: Collection[Place]) -> Mapping[Place, People]:
    return {}


measure_people = Hook("projects.flags.lists.people.measure_people", _measure_nobody)
"""The share of each of these active flags, as far as it can be measured."""
