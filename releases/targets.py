"""The targets of a request's changes, their stored state, and the state that changes lead to.

`Predicted` makes changes in memory: it takes no lock and writes nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Max
from django.utils.functional import cached_property

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import NotFound
from groups.access import EVERYTHING, Caller
from playground.engine.definitions import FlagDefinition, StrategyDefinition
from projects.access import access_flag
from projects.definitions import Definitions, read_definitions
from projects.models import Flag, ProjectEnvironment, Segment
from projects.states import Change, apply_there
from projects.strategies.planned import PlannedFlag
from projects.strategies.rules import StrategyPlanner
from releases.models import Safeguard
from releases.plans.queries import FlagPath, PlanSnapshot, find_by_key, read_snapshots

ANYBODY = Caller(rights=EVERYTHING)
"""Reads the targets of changes for any caller."""


class Flags:
    """Active flags that changes can modify in an environment of a project: stored, or after other changes.

    Reads the release plans and safeguards of a flag on first use. Each method raises NotFound.
    """

    def __init__(self, project: str, environment: str) -> None:
        self.project, self.environment = project, environment
        self._plans: dict[str, Sequence[PlanSnapshot]] = {}
        self._safeguards: dict[str, Sequence[Safeguard]] = {}

    def flag(self, name: str) -> FlagDefinition:
        raise NotImplementedError

    def segment(self, key: int) -> Mapping[str, Any]:
        """The document of a segment of the project, or of all."""
        segment = Segment.objects.filter(pk=key, project__in=[self.project]).first()
        segment = segment or Segment.objects.filter(pk=key, project=None).first()
        if segment is None:
            raise NotFound(f"Segment {key} not found in project {self.project}.")
        return segment.document()

    def plans(self, name: str) -> Sequence[PlanSnapshot]:
        """Newest first."""
        self.flag(name)
        if name not in self._plans:
            self._plans[name] = read_snapshots(self.project, name, self.environment)
        return self._plans[name]

    def safeguards(self, name: str) -> Sequence[Safeguard]:
        """The safeguards of the flag itself, without its release plan's."""
        self.flag(name)
        if name not in self._safeguards:
            here = {"flag__project": self.project, "environment": self.environment}
            self._safeguards[name] = list(Safeguard.objects.filter(flag__name=name, **here))
        return self._safeguards[name]


class StoredFlags(Flags):
    """Stored flags, read once for all their changes."""

    def __init__(self, project: str, environment: str, names: Collection[str]) -> None:
        super().__init__(project, environment)
        self._names = names

    @cached_property
    def by_name(self) -> dict[str, FlagDefinition]:
        return read_definitions([self.project], self.environment, flags=self._names).by_name()

    @cached_property
    def deleted_at(self) -> dict[str, datetime]:
        """When flags with these names were last deleted. Present flags with these names are others."""
        deletions = AuditEvent.objects.filter(type=EventType.FEATURE_DELETED, feature__in=self._names)
        return dict(deletions.values_list("feature").annotate(Max("created_at")))

    def flag(self, name: str) -> FlagDefinition:
        if name not in self.by_name:
            # gives the reason, unless it exists by now
            access_flag(ANYBODY, self.project, name, archived=False)
            raise NotFound(f"Flag {name} has just been changed. Try again.")
        return self.by_name[name]


def read_places(
    projects: Collection[str], environment: str, names: Collection[str]
) -> dict[str, StoredFlags]:
    """The stored flags of each project, read at once: a name is of one flag in all projects."""
    places = {project: StoredFlags(project, environment, names) for project in projects}
    flags = read_definitions(projects, environment, flags=names).by_name()
    deleted_at = StoredFlags("", environment, names).deleted_at
    for project, stored in places.items():
        stored.by_name = {name: flag for name, flag in flags.items() if flag["project"] == project}
        stored.deleted_at = deleted_at
    return places


@dataclass(frozen=True, slots=True)
class Target:
    """The place of a change: a flag in an environment or, with "" as ``feature``, a segment."""

    project: str
    environment: str
    feature: str
    flags: Flags = field(compare=False, repr=False)

    @property
    def definition(self) -> FlagDefinition:
        """The definition of the flag in the environment. Raises NotFound."""
        return self.flags.flag(self.feature)

    def strategy(self, strategy_id: str) -> StrategyDefinition:
        """Raises NotFound."""
        for strategy in self.definition["strategies"]:
            if strategy["id"] == strategy_id:
                return strategy
        raise NotFound(f"{self.feature} has no strategy {strategy_id} in {self.environment}.")

    @property
    def plans(self) -> Sequence[PlanSnapshot]:
        """The flag's release plans in the environment, newest first. Raises NotFound."""
        return self.flags.plans(self.feature)

    def plan(self, key: str) -> PlanSnapshot:
        """Raises NotFound."""
        return find_by_key(
            self.plans, key, f"{self.feature} has no release plan {key} in {self.environment}."
        )

    def safeguard(self, key: str) -> Safeguard:
        """One of the flag itself. Raises NotFound."""
        message = f"{self.feature} has no safeguard {key} in {self.environment}."
        return find_by_key(self.flags.safeguards(self.feature), key, message)

    @property
    def path(self) -> FlagPath:
        """The path for actions."""
        return FlagPath(self.project, self.feature, self.environment)


class Predicted(Flags):
    """Stored flags of an environment of a project, and the result of successive changes.

    Never edits read objects: changes replace them.
    """

    def __init__(self, project_environment: ProjectEnvironment, stored: Definitions) -> None:
        super().__init__(project_environment.project_id, project_environment.environment_id)
        self.project_environment = project_environment
        self.flags = stored.by_name()
        self.segments = dict(stored.segments)
        self.start = stored
        """The flags before the first change."""
        self.segment_edits: dict[int, Mapping[str, Any]] = {}
        self._planner = StrategyPlanner(project_environment.project_id)

    def copy(self) -> "Predicted":
        copied = copy(self)
        copied.flags = dict(self.flags)
        copied._plans, copied._safeguards = dict(self._plans), dict(self._safeguards)
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
            raise NotFound(f"Flag {name} not found in project {self.project}.")
        return self.flags[name]

    def set_plans(self, name: str, plans: Sequence[PlanSnapshot]) -> None:
        self._plans[name] = plans

    def set_safeguards(self, name: str, safeguards: Sequence[Safeguard]) -> None:
        self._safeguards[name] = safeguards

    def target(self, name: str) -> Target:
        return Target(self.project, self.environment, name, self)

    def segment(self, key: int) -> Mapping[str, Any]:
        if key not in self.segments:
            raise NotFound(f"Segment {key} not found in project {self.project}.")
        return {**super().segment(key), **self.segment_edits.get(key, {})}

    def edit(self, name: str, **members: Any) -> None:
        edited: Any = {**self.flag(name), **members}
        self.flags[name] = edited

    def change(self, name: str, *made: Change) -> None:
        self.flags[name] = apply_there(self.flag(name), made)

    def plan_flag(self, name: str) -> PlannedFlag:
        """Plans changes of the flag, for `change`."""
        flag = Flag(name=name, project_id=self.project)
        return PlannedFlag(flag, self.project_environment, self.flag(name), self._planner)
