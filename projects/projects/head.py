"""The head of a project's console pages: name, favorite, actions and tabs (templates/projects/base.html)."""

from collections.abc import Sequence
from typing import Any

from groups.access import Caller, Permission
from projects.console import check_permissions, project_url
from projects.flags.lists.queries import list_environment_names
from projects.members.queries import count_members
from projects.models import FavoriteProject, Project, ProjectApplication
from projects.projects.actions import SETTINGS_PERMISSIONS
from projects.projects.queries import count_flags, needs_request

Tab = tuple[str, str, int | None, bool]
"""Label, URL, count, and whether it is the current one."""


def make_project_head(project: Project, tab: str, *, caller: Caller) -> dict[str, Any]:
    """The template variables of the head. ``tab`` is the URL name of the current tab. Six queries."""
    may = {
        **check_permissions(
            caller,
            project.pk,
            create=Permission.CREATE_FEATURE,
            edit=Permission.UPDATE_FEATURE,
            archive=Permission.DELETE_FEATURE,
            delete=Permission.DELETE_PROJECT,
        ),
        "settings": any(caller.can(p, project=project.pk) for p in SETTINGS_PERMISSIONS),
    }
    counts = count_flags([project.pk])[project.pk]
    return {
        "project": project,
        "url": project_url(project.pk),
        "counts": counts,
        "environments": list_environment_names(project),
        "favorite": FavoriteProject.objects.filter(user=caller.id, project=project).exists(),
        "may": may,
        "tabs": _make_tabs(project, tab, counts["featureCount"], may),
    }


def _make_tabs(project: Project, current: str, flags: int, may: dict[str, bool]) -> Sequence[Tab]:
    tabs: list[tuple[str, str, int | None]] = [
        ("Flags", "project", flags),
        ("Environments", "environments-compare", None),
        (
            "Applications",
            "project-applications",
            ProjectApplication.objects.filter(project_id=project.pk).count(),
        ),
        ("Access", "project-access", count_members([project.pk]).get(project.pk, 0)),
    ]
    if needs_request(project.pk):
        tabs.insert(1, ("Change requests", "change-requests", None))
    if may["settings"]:
        tabs.append(("Settings", "project-settings", None))
    elif may["delete"]:
        tabs.append(("Settings", "project-delete", None))
    return [(label, project_url(project.pk, name), count, name == current) for label, name, count in tabs]
