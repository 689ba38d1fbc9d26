"""Predicts an environment's results after changes, without making them: takes no lock, writes nothing."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from flagadmin.core.errors import NotFound
from flagadmin.core.unreadable_values import check_values
from playground.engine.definitions import FlagDefinition, StrategyDefinition
from projects.definitions import Definitions
from projects.models import ProjectEnvironment
from projects.states import Change, apply_there, next_sort_order
from projects.strategies.rules import StrategyDefaults, StrategyPlanner
from releases.models import Safeguard
from releases.plans.snapshots import PlanSnapshot, read_snapshots
from releases.targets import Target, read_flag_safeguards, read_segment


class Predicted:
    """Stored flags of an environment of a project, and the result of successive changes.

    Reads release plans and safeguards of a flag on first use. Never edits read objects: changes replace them.
    """

    def __init__(self, project_environment: ProjectEnvironment, stored: Definitions) -> None:
        self.project_environment = project_environment
        self.flags = stored.by_name()
        self.segments = dict(stored.segments)
        self.start = stored
        """The flags before the first change."""
        self.segment_edits: dict[int, Mapping[str, Any]] = {}
        self._planner = StrategyPlanner(project_environment.project_id)
        self._plans: dict[str, Sequence[PlanSnapshot]] = {}
        self._safeguards: dict[str, Sequence[Safeguard]] = {}

    def copy(self) -> "Predicted":
        copied = copy(self)
        copied.flags, copied._plans, copied._safeguards = (
            dict(self.flags),
            dict(self._plans),
            dict(self._safeguards),
        )
        copied.take_segments(self)
        copied.start = self.definitions()
        return copied

    def take_segments(self, other: "Predicted") -> None:
        """Adopts the segments after another project's changes."""
        self.segments, self.segment_edits = dict(other.segments), dict(other.segment_edits)

    def definitions(self) -> Definitions:
        return Definitions(list(self.flags.values()), self.segments)

    def flag(self, name: str) -> FlagDefinition:
        if name not in self.flags:
            raise NotFound(f"Flag {name} not found in project {self.project_environment.project_id}.")
        return self.flags[name]

    def plans(self, name: str) -> Sequence[PlanSnapshot]:
        """Newest first."""
        self.flag(name)
        if name not in self._plans:
            self._plans[name] = read_snapshots(*self.target(name).path)
        return self._plans[name]

    def set_plans(self, name: str, plans: Sequence[PlanSnapshot]) -> None:
        self._plans[name] = plans

    def safeguards(self, name: str) -> Sequence[Safeguard]:
        """Returns the safeguards of the flag itself."""
        self.flag(name)
        if name not in self._safeguards:
            self._safeguards[name] = read_flag_safeguards(*self.target(name).path)
        return self._safeguards[name]

    def set_safeguards(self, name: str, safeguards: Sequence[Safeguard]) -> None:
        self._safeguards[name] = safeguards

    def target(self, name: str) -> Target:
        return Target(
            self.project_environment.project_id, self.project_environment.environment_id, name, self
        )

    def segment(self, key: int) -> Mapping[str, Any]:
        """Its document. Raises NotFound."""
        project_id = self.project_environment.project_id
        if key not in self.segments:
            raise NotFound(f"Segment {key} not found in project {project_id}.")
        return {**read_segment(project_id, key), **self.segment_edits.get(key, {})}

    def edit(self, name: str, **members: Any) -> None:
        edited: Any = {**self.flag(name), **members}
        self.flags[name] = edited

    def change(self, name: str, *made: Change) -> None:
        self.flags[name] = apply_there(self.flag(name), made)

    def plan(
        self, name: str, values: Mapping[str, Any], stored: StrategyDefinition | None = None
    ) -> StrategyDefinition:
        """A strategy in stored form: the last one, if it is new and has no sort order."""
        defaults = StrategyDefaults(name, self.project_environment.project.default_stickiness)
        document, problems = self._planner.plan(values, defaults, stored=stored)
        check_values(problems)
        if document["sortOrder"] is None:
            document["sortOrder"] = (
                stored["sortOrder"] if stored else next_sort_order(self.flag(name)["strategies"])
            )
        document["id"] = stored["id"] if stored else ""
        return document
