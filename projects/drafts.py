"""Edits that are not saved: what a form would store, for whoever wants to know what that changes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from playground.engine.definitions import (
    ConstraintDefinition,
    FlagDefinition,
    SegmentDefinition,
    StrategyDefinition,
)
from projects.definitions import Definitions, read_definitions
from projects.models import Environment, Flag, FlagEnvironment


@dataclass(frozen=True, slots=True)
class Draft:
    """An edit that is not saved. `changes` replace members of the flag's document, as they would be stored.

    `default_strategy` is what a flag without an enabled strategy gets when it is turned on. `segments` are constraints
    by the id of their segment.
    """

    flag: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    default_strategy: Mapping[str, Any] = field(default_factory=dict)
    archived: bool = False
    segments: Mapping[int, list[ConstraintDefinition]] = field(default_factory=dict)

    def used_segments(self) -> Iterator[int]:
        """The segments that it changes or that its strategies use, also the one that it may add."""
        yield from self.segments
        for strategy in self.changes.get("strategies", ()):
            yield from strategy["segments"]
        yield from self.default_strategy.get("segments", ())

    def edit(self, document: FlagDefinition) -> FlagDefinition:
        """The flag as saving the draft would store it: off if it loses its last enabled strategy, and with the default
        strategy if it is turned on without one. A flag that has none, and gets none, stays as it is."""
        if document["name"] != self.flag:
            return document
        edited = self.with_changes(document)
        if all(strategy.get("disabled") for strategy in edited["strategies"]):
            if self.changes.get("enabled"):
                edited["strategies"] = [*edited["strategies"], self.default_strategy]
            elif "strategies" in self.changes and document["strategies"]:
                edited["enabled"] = False
        return edited

    def with_changes(self, document: FlagDefinition) -> Any:
        return {**document, **self.changes}

    def apply_to(self, stored: Definitions) -> Definitions:
        """Stored definitions as they would be."""
        flags = [
            self.edit(flag) for flag in stored.flags if not (self.archived and flag["name"] == self.flag)
        ]
        segments: dict[int, SegmentDefinition] = {
            key: {**segment, "constraints": self.segments.get(key, segment["constraints"])}
            for key, segment in stored.segments.items()
        }
        return Definitions(flags, segments)


@dataclass(frozen=True, slots=True)
class ExactDraft(Draft):
    """Stores exactly what it says, as a revert does."""

    def edit(self, document: FlagDefinition) -> FlagDefinition:
        return self.with_changes(document) if document["name"] == self.flag else document


class FlagEdit(NamedTuple):
    """A draft, and a flag whose result it may change in an environment."""

    project: str
    flag: str
    environment: str
    draft: Draft


class NewFlagEdit(NamedTuple):
    """A flag that does not exist, as it would be before and after an edit."""

    project: str
    environment: str
    before: FlagDefinition
    after: FlagDefinition


def read_strategies(flag: Flag, environment: str) -> list[StrategyDefinition]:
    """The flag's strategies in the environment, in order."""
    [definition] = read_definitions([flag.project_id], environment, flags=[flag.name]).flags
    return definition["strategies"]


def keep_place(document: StrategyDefinition, stored: StrategyDefinition) -> StrategyDefinition:
    """An edited strategy with what evaluates: its title and place stay as stored."""
    return document | {"id": stored["id"], "title": stored["title"], "sortOrder": stored["sortOrder"]}


def find_enabled_places(flags: Sequence[Flag]) -> list[tuple[str, str]]:
    """(flag, environment) where flags of one project are on, production first."""
    rows = FlagEnvironment.objects.filter(flag__in=flags, enabled=True)
    rows = rows.filter(environment__projects=flags[0].project_id)
    names = Environment.objects.names()
    places = rows.values_list("flag__name", "environment_id")
    return sorted(places, key=lambda place: (names.index(place[1]), place[0]))
