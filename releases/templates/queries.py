"""Finds release templates that a caller may read, and shows them in the reference server's shapes."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Q, QuerySet

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.document import Document
from flagadmin.core.errors import NotFound
from flagadmin.core.http.responses import iso
from groups.access import Caller
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT
from releases.models import Milestone, ReleaseTemplate


def readable_templates(caller: Caller) -> QuerySet[ReleaseTemplate]:
    """Finds the templates of all projects, which every caller may read, and those of readable projects."""
    templates = ReleaseTemplate.objects.prefetch_related("milestones")
    readable = caller.match_readable("project")
    return templates.filter(Q(project=None) | readable) if readable else templates


def list_templates(caller: Caller, *projects: str | None) -> QuerySet[ReleaseTemplate]:
    """The active templates of these projects by name. None: those of all projects."""
    named = Q(project__in=[project for project in projects if project is not None])
    wanted = named | Q(project=None) if None in projects else named
    return readable_templates(caller).filter(wanted, archived_at=None).order_by("name", "id")


def find_template(caller: Caller, key: str) -> ReleaseTemplate:
    """A template of any project, archived or not. Raises NotFound."""
    return get_or_404(
        readable_templates(caller).select_related("project"), f"Release template {key} not found.", pk=key
    )


def access_template(caller: Caller, key: str, project_id: str | None) -> ReleaseTemplate:
    """A template of the project or (None) of all. Raises NotFound."""
    template = readable_templates(caller).filter(pk=key, project=project_id).first()
    if template is None:
        where = f" in project {project_id}" if project_id else ""
        raise NotFound(f"Release template {key} not found{where}.")
    return template


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
    """Changes one of the documents. `sortOrder` moves it. It keeps its id."""
    place = changes.get("sortOrder")
    kept = documents.index(document) if place is None else place
    documents.remove(document)
    add_in_place(documents, {**document, **changes, "id": document["id"], "sortOrder": kept})


def without_defaults(strategy: Document) -> Document:
    """A template's strategy, with empty values for those that a flag completes."""
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
