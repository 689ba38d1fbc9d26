"""Finds release templates that a caller may read."""

from django.db.models import Q, QuerySet

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.errors import NotFound
from groups.access import Caller
from releases.models import ReleaseTemplate


def readable_templates(caller: Caller) -> QuerySet[ReleaseTemplate]:
    """Finds the templates of all projects, which every caller may read, and those of readable projects."""
    templates = ReleaseTemplate.objects.prefetch_related("milestones")
    allowed = caller.readable_projects
    return (
        templates.all()
        if allowed is None
        else templates.filter(Q(project=None) | Q(project__in=list(allowed)))
    )


def list_templates(caller: Caller, *projects: str | None) -> QuerySet[ReleaseTemplate]:
    """The templates of these projects that are not archived, by name. None: those of all projects."""
    named = Q(project__in=[project for project in projects if project is not None])
    wanted = named | Q(project=None) if None in projects else named
    return readable_templates(caller).filter(wanted, archived_at=None).order_by("name", "id")


def find_template(caller: Caller, key: str) -> ReleaseTemplate:
    """A template of whichever project, archived or not. Raises NotFound."""
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
