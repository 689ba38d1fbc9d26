"""Shapes of Unleash's release templates and plans. Members have the names of its columns, and aliases of its API's."""

from datetime import datetime
from typing import Any

from pydantic import AliasChoices, Field

from importer.moving.reading.shapes import Constraint, Shape, Text


class MilestoneStrategy(Shape):
    id: str = ""
    milestone_id: str = ""
    """Only in the database, not in the API."""
    strategy_name: str = Field("", validation_alias=AliasChoices("strategyName", "name"))
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
    release_plan_definition_id: str = ""
    """Only in the database, not in the API."""
    transition: Transition | None = Field(None, alias="transitionCondition")
    started_at: datetime | None = Field(None, alias="startedAt")
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

    feature_name: str = Field(alias="featureName")
    environment: str
    active_milestone_id: str = Field("", alias="activeMilestoneId")
    release_plan_template_id: str = Field("", alias="releasePlanTemplateId")


class ReleaseRow(SourcePlan):
    """A release template in the database, or the plan of a flag: ``discriminator`` tells."""

    discriminator: str
    feature_name: str = ""
    environment: str = ""
