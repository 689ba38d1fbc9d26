"""Helpers for console pages about projects and flags: URLs, breadcrumbs and permissions."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from django.urls import reverse, reverse_lazy

from flagadmin.core.errors import ValidationError
from groups.console import Breadcrumbs, Caller, ConsolePage, Permission
from projects.access import access_project
from projects.models import Flag, Project

PROJECTS = ("Projects", reverse_lazy("projects"))
FLAGS = ("Flags", reverse_lazy("all-flags"))


def project_url(project_id: str, page: str = "project") -> str:
    """The URL of a project's page; ``page`` is the URL name."""
    return reverse(page, args=[project_id])


def flag_url(project_id: str, name: str, page: str = "flag") -> str:
    """The URL of a flag's page; ``page`` is the URL name."""
    return reverse(page, args=[project_id, name])


def application_url(name: str) -> str:
    # `reverse` does not escape slashes and dots, and a browser would resolve "../".
    return reverse("application", args=["NAME"]).replace("NAME", quote(name, ""))


def api_path(project_id: str, name: str = "") -> str:
    """The path of a project in the admin API, or of one of its flags."""
    path = f"/api/admin/projects/{quote(project_id, '')}"
    return f"{path}/features/{quote(name, '')}" if name else path


def read_turned(form: Mapping[str, Any]) -> str:
    """Reads ``on`` or ``off`` from a switch. Raises ValidationError: a missing value must not turn a flag off."""
    turned = str(form.get("enabled", ""))
    if turned not in ("on", "off"):
        raise ValidationError.at(
            "enabled", f"must be on or off, not {turned}" if turned else "must be on or off"
        )
    return turned


def get_project_breadcrumbs(project: Project) -> Breadcrumbs:
    """Breadcrumbs for a page below a project."""
    return (FLAGS, (project.name, project_url(project.pk)))


def get_flag_breadcrumbs(flag: Flag) -> Breadcrumbs:
    """Breadcrumbs for a page below a flag."""
    return (*get_project_breadcrumbs(flag.project), (flag.name, flag_url(flag.project_id, flag.name)))


class InProjectPage(ConsolePage):
    """A page below a project."""

    project: Project

    def find(self) -> None:
        """Loads the project. Raises NotFound."""
        self.project = access_project(self.caller, self.kwargs["project_id"])
        super().find()

    def get_breadcrumbs(self) -> Breadcrumbs:
        return get_project_breadcrumbs(self.project)


class OnFlagPage(ConsolePage):
    """A page below a flag."""

    flag: Flag

    @property
    def place(self) -> tuple[str, str]:
        """The project and the name of the flag in the URL."""
        return self.kwargs["project_id"], self.kwargs["name"]

    def get_breadcrumbs(self) -> Breadcrumbs:
        return get_flag_breadcrumbs(self.flag)


def check_permissions(caller: Caller, project_id: str, **permissions: Permission) -> Mapping[str, bool]:
    """Permissions for templates, by name: ``{% if may.archive %}``."""
    return {name: caller.can(permission, project=project_id) for name, permission in permissions.items()}
