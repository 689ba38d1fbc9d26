"""The targets of a request's changes, and their stored state."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from django.db.models import Max
from django.utils.functional import cached_property

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import NotFound
from groups.access import EVERYTHING, Caller
from playground.engine.definitions import FlagDefinition, StrategyDefinition
from projects.access import access_flag
from projects.definitions import read_definitions
from projects.models import Segment
from projects.segments.documents import make_segment_document
from releases.models import Safeguard
from releases.plans.access import FlagPath
from releases.plans.queries import find_by_key
from releases.plans.snapshots import PlanSnapshot, read_snapshots

ANYBODY = Caller(rights=EVERYTHING)
"""Reads the targets of changes for any caller."""


class Flags(Protocol):
    """Flags that changes can modify in an environment of a project: stored, or after other changes.

    They are active flags, by name. Each method raises NotFound.
    """

    def flag(self, name: str) -> FlagDefinition: ...

    def plans(self, name: str) -> Sequence[PlanSnapshot]: ...

    def safeguards(self, name: str) -> Sequence[Safeguard]: ...

    def segment(self, key: int) -> Mapping[str, Any]: ...


class StoredFlags:
    """Stored flags, read once for all their changes."""

    def __init__(self, project: str, environment: str, names: Collection[str]) -> None:
        self._project, self._environment, self._names = project, environment, names

    @cached_property
    def by_name(self) -> dict[str, FlagDefinition]:
        read = read_definitions([self._project], self._environment, flags=self._names)
        return read.by_name()

    @cached_property
    def deleted_at(self) -> dict[str, datetime]:
        """When flags with these names were last deleted. Present flags with these names are others."""
        deletions = AuditEvent.objects.filter(type=EventType.FEATURE_DELETED, feature__in=self._names)
        return dict(deletions.values_list("feature").annotate(Max("created_at")))

    def flag(self, name: str) -> FlagDefinition:
        if name not in self.by_name:
            access_flag(
                ANYBODY, self._project, name, archived=False
            )  # gives the reason, unless it exists by now
            raise NotFound(f"Flag {name} has just been changed. Try again.")
        return self.by_name[name]

    def plans(self, name: str) -> Sequence[PlanSnapshot]:
        access_flag(ANYBODY, self._project, name, archived=False)
        return read_snapshots(self._project, name, self._environment)

    def safeguards(self, name: str) -> Sequence[Safeguard]:
        access_flag(ANYBODY, self._project, name, archived=False)
        return read_flag_safeguards(self._project, name, self._environment)

    def segment(self, key: int) -> Mapping[str, Any]:
        return read_segment(self._project, key)


def read_flag_safeguards(project_id: str, flag: str, environment: str) -> list[Safeguard]:
    """The safeguards of the flag itself, without its release plan's."""
    return list(Safeguard.objects.filter(flag__project=project_id, flag__name=flag, environment=environment))


def read_segment(project_id: str, key: int) -> Mapping[str, Any]:
    """The document of a segment of the project, or of all. Raises NotFound."""
    segment = Segment.objects.filter(pk=key, project__in=[project_id]).first()
    segment = segment or Segment.objects.filter(pk=key, project=None).first()
    if segment is None:
        raise NotFound(f"Segment {key} not found in project {project_id}.")
    return make_segment_document(segment)


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
