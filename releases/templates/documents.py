"""Templates and milestones as the API shows them, in the reference server's shapes."""

from collections.abc import Iterable, Mapping
from typing import Any

from flagadmin.core.document import Document
from flagadmin.core.errors import NotFound
from flagadmin.core.http.timestamps import iso
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT
from releases.models import Milestone, ReleaseTemplate


def find_by_id(documents: Iterable[Document], key: str, kind: str) -> Document:
    """Raises NotFound."""
    for document in documents:
        if document["id"] == key:
            return document
    raise NotFound(f"{kind} {key} not found.")


def add_in_place(documents: list[Document], document: Document) -> None:
    """Adds it at the place `sortOrder`, or at the end."""
    place = document.get("sortOrder")
    documents.insert(len(documents) if place is None else max(0, place), document)


def change_in_place(documents: list[Document], document: Document, changes: Mapping[str, Any]) -> None:
    """Changes one of the documents, which `sortOrder` moves. It keeps its id."""
    place = changes.get("sortOrder")
    kept = documents.index(document) if place is None else place
    documents.remove(document)
    add_in_place(documents, {**document, **changes, "id": document["id"], "sortOrder": kept})


def without_defaults(strategy: Document) -> Document:
    """A strategy of a template, with what the flag of a plan completes as empty."""
    if strategy["name"] != FLEXIBLE_ROLLOUT:
        return strategy
    return {**strategy, "parameters": {"stickiness": "", "groupId": "", **strategy["parameters"]}}


def template_document(template: ReleaseTemplate) -> Document:
    return {
        "id": template.pk,
        "discriminator": "template",
        "name": template.name,
        "description": template.description or None,
        "project": template.project_id,
        "createdByUserId": template.author_id or 0,
        "createdAt": iso(template.created_at),
        "archivedAt": iso(template.archived_at),
        "milestones": [milestone_document(milestone) for milestone in template.milestones.all()],
    }


def milestone_document(milestone: Milestone, paused_at: Any = None) -> Document:
    return {
        "id": milestone.pk,
        "name": milestone.name,
        "sortOrder": milestone.place,
        "releasePlanDefinitionId": milestone.template_id or milestone.plan_id,
        "startedAt": iso(milestone.started_at),
        "transitionCondition": milestone.transition,
        "progressionExecutedAt": iso(milestone.passed_at),
        "pausedAt": iso(paused_at),
        "strategies": [
            strategy_document(milestone, strategy, index)
            for index, strategy in enumerate(milestone.strategies)
        ],
    }


def strategy_document(milestone: Milestone, strategy: Document, place: int) -> Document:
    return {
        "id": strategy["id"],
        "milestoneId": milestone.pk,
        "sortOrder": place,
        "title": strategy["title"],
        "strategyName": strategy["name"],
        "parameters": strategy["parameters"],
        "constraints": strategy["constraints"],
        "variants": strategy["variants"],
        "segments": strategy["segments"],
    }
