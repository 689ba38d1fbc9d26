"""Reads release templates and plans: over the API, where Unleash's edition has them, or from its database."""

from collections import defaultdict
from collections.abc import Iterator
from urllib.parse import quote

from pydantic import Field

from importer.moving.reading.database import SourceDatabase
from importer.moving.reading.hidden import MilestoneSegmentRow
from importer.moving.reading.installation import Installation
from importer.moving.reading.release_shapes import (
    MilestoneStrategy,
    ReleaseRow,
    SourceMilestone,
    SourcePlan,
    SourceTemplate,
)
from importer.moving.reading.shapes import Shape, read_list, read_shape
from importer.moving.reading.source import Source

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
    rows = database.read("release_plan_definitions", ReleaseRow)
    for row in rows:
        row.milestones = milestones[row.id]
    templates = [row for row in rows if row.discriminator == "template"]
    plans = [row for row in rows if row.discriminator != "template"]
    installation.templates = [*templates] or installation.templates
    installation.plans = [*plans] or installation.plans


def _read_milestones(
    installation: Installation, database: SourceDatabase
) -> dict[str, list[SourceMilestone]]:
    """Reads the milestones by the template or plan that has them."""
    strategies: dict[str, list[MilestoneStrategy]] = defaultdict(list)
    segments = _read_segments(installation, database)
    for strategy in database.read("milestone_strategies", MilestoneStrategy):
        strategy.segments = segments[strategy.id]
        strategies[strategy.milestone_id].append(strategy)
    milestones: dict[str, list[SourceMilestone]] = defaultdict(list)
    for milestone in database.read("milestones", SourceMilestone):
        milestone.strategies = strategies[milestone.id]
        milestones[milestone.release_plan_definition_id].append(milestone)
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
