"""What the pages about projects and flags share: addresses and what one may do."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from groups.access import Caller
from groups.console import ActionPage as ActionPage
from groups.permissions import Permission
from projects.models import Flag, Project


def project_url(project_id: str) -> str:
    return f"/projects/{quote(project_id, '')}/"


def flag_url(project_id: str, name: str) -> str:
    return f"{project_url(project_id)}features/{quote(name, '')}/"


def application_url(name: str) -> str:
    return f"/applications/{quote(name, '')}/"


def api_path(project_id: str, name: str = "") -> str:
    """Of a project, or of one of its flags, in the admin API."""
    path = f"/api/admin/projects/{quote(project_id, '')}"
    return f"{path}/features/{quote(name, '')}" if name else path


def project_crumbs(project: Project) -> Sequence[tuple[str, str]]:
    """The pages above one of the project's."""
    return (("Projects", "/projects/"), (project.name, project_url(project.pk)))


def flag_crumbs(flag: Flag) -> Sequence[tuple[str, str]]:
    """The pages above one of the flag's."""
    return (*project_crumbs(flag.project), (flag.name, flag_url(flag.project_id, flag.name)))


def allowed(caller: Caller, project_id: str, **wanted: Permission) -> Mapping[str, bool]:
    """What a template asks before it offers something: ``{% if may.archive %}``."""
    return {name: caller.can(permission, project=project_id) for name, permission in wanted.items()}
