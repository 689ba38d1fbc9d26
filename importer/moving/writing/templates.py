"""Moves release templates."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from importer.moving.reading.installation import Installation
from importer.moving.reading.release_shapes import MilestoneStrategy, SourceMilestone, SourceTemplate
from importer.moving.report import Kind, Line
from importer.moving.writing.edits import Edits
from importer.moving.writing.keeping import SYSTEM, keep, try_alone
from importer.moving.writing.shared import SegmentIds
from projects.models import Project
from releases.models import ReleaseTemplate
from releases.templates.actions import create_template, read_document, update_template

MEMBERS = ("id", "title", "parameters", "constraints", "variants")
"""Members of a strategy that come as they are."""
FLAG_NAME = "{{featureName}}"
"""Stands in a template for the flag's name, which is what a group without a name is here."""


def move_templates(installation: Installation, edits: Edits) -> Iterator[Line]:
    ids = SegmentIds(installation)
    moved: set[tuple[str | None, str]] = set()
    projects = {*Project.objects.values_list("id", flat=True)}
    for template in installation.templates:
        key, subject = (template.project, template.name), f"release template {template.name}"
        project = template.project or ""
        if template.archived_at is not None:
            yield Line(Kind.NOTE, subject, "is archived and stays there", project)
        elif project and project not in projects:
            yield Line(Kind.CANNOT, subject, f"project {project} is not here", project)
        elif key in moved:
            yield Line(Kind.CANNOT, subject, "another one there has the same name", project)
        else:
            moved.add(key)
            yield from try_alone(subject, partial(_move, template, ids, edits), project)


def _move(template: SourceTemplate, ids: SegmentIds, edits: Edits) -> Iterator[Line]:
    present = ReleaseTemplate.objects.filter(
        name=template.name, archived_at=None, project=template.project
    ).first()
    values = {
        "name": template.name,
        "description": template.description,
        "milestones": read_milestones(template.milestones, ids),
    }
    return keep(
        f"release template {template.name}",
        present,
        read_document,
        create=partial(create_template, values, project_id=template.project, caller=SYSTEM),
        update=partial(
            update_template, present.pk if present else "", values, project_id=template.project, caller=SYSTEM
        ),
        is_edited=edits.has("release-plan-template-", template.name),
        project=template.project or "",
    )


def read_milestones(milestones: Iterable[SourceMilestone], ids: SegmentIds) -> list[dict[str, Any]]:
    """As they are given to actions. Raises ValidationError if a segment is not here."""
    return [
        {
            "id": each.id,
            "name": each.name,
            "strategies": [
                _read_strategy(strategy, ids)
                for strategy in sorted(each.strategies, key=lambda each: each.sort_order)
            ],
            "transitionCondition": each.transition and {"intervalMinutes": each.transition.minutes},
        }
        for each in sorted(milestones, key=lambda each: each.sort_order)
    ]


def _read_strategy(strategy: MilestoneStrategy, ids: SegmentIds) -> dict[str, Any]:
    document = strategy.model_dump(include={*MEMBERS}, exclude_unset=True)
    document["name"] = strategy.strategy_name
    document["segments"] = ids.translate(strategy.segments)
    if strategy.parameters.get("groupId") == FLAG_NAME:
        document["parameters"] = {**strategy.parameters, "groupId": ""}
    return document
