"""Shapes of Unleash's release templates and plans, in its API and in its database."""

from datetime import datetime
from typing import Any

from pydantic import Field

from importer.moving.shapes import Constraint, Shape, Text


class MilestoneStrategy(Shape):
    id: str = ""
    name: str = Field("", alias="strategyName")
    title: str = ""
    sort_order: int = Field(0, alias="sortOrder")
    parameters: dict[str, Text] = {}
    constraints: list[Constraint] = []
    variants: list[dict[str, Any]] = []
    segments: list[int] = []


class Transition(Shape):
    """The condition for starting the next milestone."""

    minutes: int = Field(alias="intervalMinutes")


class SourceMilestone(Shape):
    id: str = ""
    name: str
    sort_order: int = Field(0, alias="sortOrder")
    transition: Transition | None = Field(None, alias="transitionCondition")
    started_at: datetime | None = Field(None, alias="startedAt")
    passed_at: datetime | None = Field(None, alias="progressionExecutedAt")
    strategies: list[MilestoneStrategy] = []


class SourceTemplate(Shape):
    """A release template."""

    id: str = ""
    name: str
    description: str = ""
    project: str | None = None
    archived_at: datetime | None = Field(None, alias="archivedAt")
    milestones: list[SourceMilestone] = []


class SourcePlan(SourceTemplate):
    """The release plan of a flag in an environment. The strategies of its active milestone are the flag's."""

    flag: str = Field(alias="featureName")
    environment: str
    active: str = Field("", alias="activeMilestoneId")
    template: str = Field("", alias="releasePlanTemplateId")
