"""Reads release templates and plans: over the API, where Unleash's edition has them, or from its database."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from pydantic import Field

from importer.moving.database import SourceDatabase
from importer.moving.hidden import MilestoneRow, MilestoneSegmentRow, MilestoneStrategyRow, ReleaseRow
from importer.moving.installation import Installation
from importer.moving.release_shapes import SourceMilestone, SourcePlan, SourceTemplate
from importer.moving.shapes import Shape, read_list, read_shape
from importer.moving.source import Source

TEMPLATES = "/api/admin/release-plan-templates"
ADDED = "/api/admin/search/events?type=IS:release-plan-added&limit=1000&offset="
MAX_EVENTS = 100_000
SEGMENTS = "milestone_strategy_segments"


class _Added(Shape):
    project: str = ""
    flag: str = Field("", alias="featureName")
    environment: str = ""


class _AddedEvents(Shape):
    events: list[_Added] = []


def read_releases(source: Source, installation: Installation) -> None:
    """Plans are found in the log: to ask for each flag in each environment would take too long."""
    installation.templates = read_list(source, TEMPLATES, None, SourceTemplate, optional=True)
    if not installation.templates:
        return
    places = dict.fromkeys(
        (event.project, event.flag, event.environment) for event in _read_added(source) if event.flag
    )

    def read(place: tuple[str, str, str]) -> list[SourcePlan]:
        project, flag, environment = (quote(part, safe="") for part in place)
        path = f"/api/admin/projects/{project}/features/{flag}/environments/{environment}/release-plans"
        return read_list(source, path, None, SourcePlan, optional=True)

    installation.plans = [plan for plans in source.for_each(read, places) for plan in plans]


def _read_added(source: Source) -> Iterator[_Added]:
    for offset in range(0, MAX_EVENTS, 1_000):
        path = f"{ADDED}{offset}"
        events = read_shape(source.address, path, source.find(path) or {}, _AddedEvents).events
        yield from events
        if len(events) < 1_000:
            return


def add_releases(installation: Installation, database: SourceDatabase) -> None:
    """Adds the templates and plans of the database, if it has any."""
    milestones = _read_milestones(installation, database)
    templates, plans = [], []
    for row in database.read("release_plan_definitions", ReleaseRow):
        document = row.model_dump(include={"id", "name", "description", "project", "archived_at"})
        document["milestones"] = milestones[row.id]
        if row.discriminator == "template":
            templates.append(SourceTemplate(**document))
        else:
            document |= {"flag": row.feature_name, "environment": row.environment}
            document |= {"active": row.active_milestone_id, "template": row.release_plan_template_id}
            plans.append(SourcePlan(**document))
    installation.templates = templates or installation.templates
    installation.plans = plans or installation.plans


def _read_milestones(
    installation: Installation, database: SourceDatabase
) -> dict[str, list[SourceMilestone]]:
    """Reads the milestones by the template or plan that has them."""
    strategies: dict[str, list[Any]] = defaultdict(list)
    segments = _read_segments(installation, database)
    for row in database.read("milestone_strategies", MilestoneStrategyRow):
        document = row.model_dump(exclude_unset=True, exclude={"strategy_name", "milestone_id"})
        document |= {"name": row.strategy_name, "segments": segments[row.id]}
        strategies[row.milestone_id].append(document)
    milestones: dict[str, list[SourceMilestone]] = defaultdict(list)
    for milestone in database.read("milestones", MilestoneRow):
        document = milestone.model_dump(exclude={"release_plan_definition_id"})
        document["strategies"] = strategies[milestone.id]
        milestones[milestone.release_plan_definition_id].append(SourceMilestone.model_validate(document))
    return milestones


def _read_segments(installation: Installation, database: SourceDatabase) -> dict[str, list[int]]:
    segments: dict[str, list[int]] = defaultdict(list)
    if database.has(SEGMENTS, "milestone_strategy_id", "segment_id"):
        for row in database.read(SEGMENTS, MilestoneSegmentRow):
            segments[row.milestone_strategy_id].append(row.segment_id)
    elif SEGMENTS in database.tables and database.count(SEGMENTS, 1):
        detail = f"table {SEGMENTS} is unknown here: check who gets each milestone"
        installation.cannot("segments of release templates", detail)
    return segments
