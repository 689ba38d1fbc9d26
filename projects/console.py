"""What the pages about projects and flags share: addresses and what one may do."""

from collections.abc import Mapping
from urllib.parse import quote

from django.urls import reverse, reverse_lazy

from groups.access import Caller
from groups.console import ActionPage as ActionPage
from groups.console import Crumbs
from groups.permissions import Permission
from projects.models import Flag, Project

PROJECTS = ("Projects", reverse_lazy("projects"))


def project_url(project_id: str, page: str = "project") -> str:
    """The URL of a project, or of another page about it."""
    return reverse(page, args=[project_id])


def flag_url(project_id: str, name: str, page: str = "flag") -> str:
    """The URL of a flag, or of another page about it."""
    return reverse(page, args=[project_id, name])


def application_url(name: str) -> str:
    # `reverse` leaves slashes and dots as they are, and a browser would resolve "../".
    return reverse("application", args=["NAME"]).replace("NAME", quote(name, ""))


def api_path(project_id: str, name: str = "") -> str:
    """Of a project, or of one of its flags, in the admin API."""
    path = f"/api/admin/projects/{quote(project_id, '')}"
    return f"{path}/features/{quote(name, '')}" if name else path


def project_crumbs(project: Project) -> Crumbs:
    """The pages above one of the project's."""
    return (PROJECTS, (project.name, project_url(project.pk)))


def flag_crumbs(flag: Flag) -> Crumbs:
    """The pages above one of the flag's."""
    return (*project_crumbs(flag.project), (flag.name, flag_url(flag.project_id, flag.name)))


def allowed(caller: Caller, project_id: str, **wanted: Permission) -> Mapping[str, bool]:
    """What a template asks before it offers something: ``{% if may.archive %}``."""
    return {name: caller.can(permission, project=project_id) for name, permission in wanted.items()}
