"""Unsaved edits: the values that a form would store, to show their effect."""

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
from projects.states import turn_on, with_strategies


@dataclass(frozen=True, slots=True)
class Draft:
    """An unsaved edit. `changes` replace members of the flag's document, in stored form.

    `default_strategy` is the one that a flag without an enabled strategy gets when it is turned on. `segments` are
    constraints by the id of their segment.
    """

    flag: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    default_strategy: Mapping[str, Any] = field(default_factory=dict)
    archived: bool = False
    segments: Mapping[int, list[ConstraintDefinition]] = field(default_factory=dict)

    def used_segments(self) -> Iterator[int]:
        """The segments that it changes or its strategies use, including the strategy that it may add."""
        yield from self.segments
        for strategy in self.changes.get("strategies", ()):
            yield from strategy["segments"]
        yield from self.default_strategy.get("segments", ())

    def edit(self, document: FlagDefinition) -> FlagDefinition:
        """The flag after saving the draft: off if it loses its last enabled strategy, and with the default strategy
        if it is turned on without one. A flag that has none, and gets none, stays unchanged.
        """
        if document["name"] != self.flag:
            return document
        edited: FlagDefinition = self.with_changes(document)
        if self.changes.get("enabled"):
            return turn_on(edited, self.default_strategy)
        loses_some = "strategies" in self.changes and document["strategies"]
        return with_strategies(edited, edited["strategies"]) if loses_some else edited

    def with_changes(self, document: FlagDefinition) -> Any:
        return {**document, **self.changes}

    def apply_to(self, stored: Definitions) -> Definitions:
        """Stored definitions with the draft applied."""
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
    """Stores its values exactly, like a revert."""

    def edit(self, document: FlagDefinition) -> FlagDefinition:
        return self.with_changes(document) if document["name"] == self.flag else document


class FlagEdit(NamedTuple):
    """A draft, and a flag whose result it may change in an environment."""

    project: str
    flag: str
    environment: str
    draft: Draft


class NewFlagEdit(NamedTuple):
    """A flag that does not exist, before and after an edit."""

    project: str
    environment: str
    before: FlagDefinition
    after: FlagDefinition


def read_strategies(flag: Flag, environment: str) -> list[StrategyDefinition]:
    """The flag's strategies in the environment, in order."""
    [definition] = read_definitions([flag.project_id], environment, flags=[flag.name]).flags
    return definition["strategies"]


def keep_place(document: StrategyDefinition, stored: StrategyDefinition) -> StrategyDefinition:
    """An edited strategy in the stored one's place: title and position stay as stored."""
    return document | {"id": stored["id"], "title": stored["title"], "sortOrder": stored["sortOrder"]}


def find_enabled_places(flags: Sequence[Flag]) -> list[tuple[str, str]]:
    """(flag, environment) where flags of one project are on, production first."""
    rows = FlagEnvironment.objects.filter(flag__in=flags, enabled=True)
    rows = rows.filter(environment__projects=flags[0].project_id)
    names = Environment.objects.names()
    places = rows.values_list("flag__name", "environment_id")
    return sorted(places, key=lambda place: (names.index(place[1]), place[0]))
