"""Reads in which environments of a project changes need a change request."""

from collections.abc import Collection

from projects.models import ProjectEnvironment


def needs_request(project_id: str, environments: Collection[str] | None = None) -> bool:
    """Whether a change in one of these environments of the project, or in any, needs a change request."""
    links = ProjectEnvironment.objects.needing_requests().filter(project=project_id)
    if environments is not None:
        links = links.filter(environment__in=environments)
    return links.exists()
