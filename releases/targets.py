"""Where the changes of a request are made, and what is stored there."""

from collections.abc import Collection
from dataclasses import dataclass, field

from django.utils.functional import cached_property

from flagadmin.core.errors import NotFound
from groups.access import EVERYTHING, Caller
from playground.engine.definitions import FlagDefinition, StrategyDefinition
from projects.access import access_flag
from projects.definitions import read_definitions
from projects.models import Flag

ANYBODY = Caller(rights=EVERYTHING)
"""Reads what a change is about, whoever asks."""


class StoredFlags:
    """Active flags as they are configured in an environment, read once for all changes of them."""

    def __init__(self, project: str, environment: str, names: Collection[str]) -> None:
        self._project, self._environment, self._names = project, environment, names

    @cached_property
    def by_name(self) -> dict[str, FlagDefinition]:
        read = read_definitions([self._project], self._environment, flags=self._names)
        return {flag["name"]: flag for flag in read.flags}


@dataclass(frozen=True, slots=True)
class Target:
    """Where a change is made: a flag in an environment or, with "" as ``feature``, a segment."""

    project: str
    environment: str
    feature: str
    stored: StoredFlags = field(compare=False, repr=False)

    @property
    def flag(self) -> Flag:
        """The active flag. Raises NotFound."""
        return access_flag(ANYBODY, self.project, self.feature, archived=False)

    @property
    def definition(self) -> FlagDefinition:
        """What the flag is in the environment. Raises NotFound."""
        stored = self.stored.by_name.get(self.feature)
        if stored is None:
            # Asking for the flag says why, unless it has come since.
            raise NotFound(f"Flag {self.flag.name} has just been changed. Try again.")
        return stored

    def strategy(self, strategy_id: str) -> StrategyDefinition:
        """Raises NotFound."""
        for strategy in self.definition["strategies"]:
            if strategy["id"] == strategy_id:
                return strategy
        raise NotFound(f"{self.feature} has no strategy {strategy_id} in {self.environment}.")

    @property
    def place(self) -> tuple[str, str, str]:
        return self.project, self.feature, self.environment
