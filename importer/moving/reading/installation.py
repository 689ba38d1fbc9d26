"""All data read from the other installation."""

from dataclasses import dataclass, field
from typing import Any

from importer.moving.reading.database import Hidden
from importer.moving.reading.shapes import (
    Overview,
    SourceAddon,
    SourceEnvironment,
    SourceField,
    SourceFlag,
    SourceFlagType,
    SourcePerson,
    SourcePlan,
    SourceSegment,
    SourceStrategyType,
    SourceTag,
    SourceTagType,
    SourceTemplate,
    SourceToken,
)
from importer.moving.report import Kind, Line

HISTORY = "history"


@dataclass(slots=True)
class SourceProject:
    """A project: ``flags`` are the data of its exports, by environment, ``listed`` all flags with their dates.

    ``exported`` are the members of its exports, including empty ones.
    """

    id: str
    overview: Overview
    fields: list[SourceField]
    listed: list[SourceFlag]
    archived: set[str]
    flags: dict[str, dict[str, Any]] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Installation:
    """All readable data. ``left`` describes the rest in words."""

    address: str
    version: str
    environments: list[SourceEnvironment]
    fields: list[SourceField]
    segments: list[SourceSegment]
    strategy_types: list[SourceStrategyType]
    tag_types: list[SourceTagType]
    tags: list[SourceTag]
    flag_types: list[SourceFlagType]
    tokens: list[SourceToken]
    people: list[SourcePerson]
    origins: list[str]
    addons: list[SourceAddon]
    templates: list[SourceTemplate] = field(default_factory=list)
    plans: list[SourcePlan] = field(default_factory=list)
    hidden: Hidden | None = None
    projects: list[SourceProject] = field(default_factory=list)
    left: list[Line] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    """The projects that a move has refused. Other objects that need them are not reported as faulty."""
    segment_names: dict[int, str] = field(init=False)
    """The segments' names by their ids there, including segments that are left out."""

    def __post_init__(self) -> None:
        self.segment_names = {segment.id: segment.name for segment in self.segments}

    @property
    def flag_names(self) -> set[str]:
        return {flag.name for project in self.projects for flag in project.listed}

    def cannot(self, subject: str, detail: str, project: str = "") -> None:
        self.left.append(Line(Kind.CANNOT, subject, detail, project))
