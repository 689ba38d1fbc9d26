"""The head of a project's console pages: name, favorite, actions and tabs (templates/projects/base.html)."""

from collections.abc import Sequence
from typing import Any

from groups.access import Caller, Permission
from projects.console import check_permissions, project_url
from projects.flags.lists.queries import list_environment_names
from projects.members.actions import WRITE_PERMISSIONS
from projects.members.queries import count_members
from projects.models import FavoriteProject, Project, ProjectApplication
from projects.projects.actions import SETTINGS_PERMISSIONS
from projects.projects.queries import count_flags
from projects.tokens.access import LIST_PERMISSIONS

Tab = tuple[str, str, int | None, bool]
"""Label, URL, count, and whether it is the current one."""
INTEGRATION_PERMISSIONS = (Permission.CREATE_ADDON, Permission.UPDATE_ADDON, Permission.DELETE_ADDON)


def make_project_head(project: Project, tab: str, *, caller: Caller) -> dict[str, Any]:
    """The template variables of the head. ``tab`` is the URL name of the current page. Five queries."""
    may = {
        **check_permissions(
            caller,
            project.pk,
            create=Permission.CREATE_FEATURE,
            edit=Permission.UPDATE_FEATURE,
            archive=Permission.DELETE_FEATURE,
            delete=Permission.DELETE_PROJECT,
        ),
        "invite": any(caller.can(p, project=project.pk) for p in WRITE_PERMISSIONS),
        "settings": any(caller.can(p, project=project.pk) for p in SETTINGS_PERMISSIONS),
    }
    counts = count_flags([project.pk])[project.pk]
    settings = _list_settings(project, caller, may)
    return {
        "project": project,
        "url": project_url(project.pk),
        "counts": counts,
        "environments": list_environment_names(project),
        "favorite": FavoriteProject.objects.filter(user=caller.id, project=project).exists(),
        "may": may,
        "tabs": _make_tabs(project, tab, counts["featureCount"], settings),
        "settings_tabs": [
            (label, project_url(project.pk, name), count, name == tab) for label, name, count in settings
        ]
        if any(name == tab for _, name, _ in settings)
        else [],
    }


def _list_settings(
    project: Project, caller: Caller, may: dict[str, bool]
) -> list[tuple[str, str, int | None]]:
    """The pages within the tab Settings that the caller may open: label, URL name, count."""
    deletes = may["delete"] and not may["settings"]
    return [
        *([("General", "project-settings", None)] if may["settings"] else []),
        *([("Delete", "project-delete", None)] if deletes else []),
        ("Access", "project-access", count_members([project.pk]).get(project.pk, 0)),
        *([("Approvals", "project-approvals", None)] if may["settings"] else []),
        *([("Tokens", "project-tokens", None)] if caller.can_anywhere(LIST_PERMISSIONS) else []),
        *(
            [("Integrations", "project-integrations", None)]
            if caller.can_anywhere(INTEGRATION_PERMISSIONS)
            else []
        ),
    ]


def _make_tabs(
    project: Project, current: str, flags: int, settings: Sequence[tuple[str, str, int | None]]
) -> Sequence[Tab]:
    applications = ProjectApplication.objects.filter(project_id=project.pk).count()
    in_settings = any(name == current for _, name, _ in settings)
    tabs: list[tuple[str, str, int | None]] = [
        ("Flags", "project", flags),
        ("Applications", "project-applications", applications),
        ("Environments", "environments-compare", None),
    ]
    return [
        *((label, project_url(project.pk, name), count, name == current) for label, name, count in tabs),
        ("Settings", project_url(project.pk, settings[0][1]), None, in_settings),
    ]
