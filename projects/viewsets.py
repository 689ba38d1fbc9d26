"""Base view sets for URLs below a project or a flag: they load the objects and check the permission."""

from typing import Any

from groups.viewsets import Permission, ViewSet
from projects.access import access_flag, access_project
from projects.flags.environments.toggle import find_project_environment
from projects.models import Flag, Project
from projects.project_scope import check_scope


class InProjectViewSet(ViewSet):
    """A base for URLs below ``projects/<str:project_id>``. Projects that the caller cannot read count as missing."""

    project: Project

    def authorize(self, project_id: str, *args: Any, **kwargs: Any) -> None:
        self.project = access_project(self.caller, project_id)
        self.check_permission(project=project_id)


class OnFlagViewSet(InProjectViewSet):
    """A base for URLs below ``projects/<str:project_id>/features``.

    Loads the active flag and environment in the URL.
    """

    flag: Flag

    def authorize(
        self,
        project_id: str,
        name: str | None = None,
        environment: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if name is None:
            super().authorize(project_id)
            return
        self.flag = self.find_flag(project_id, name)
        self.check_permission(project=project_id, environment=environment)
        if environment is not None:
            find_project_environment(project_id, environment)

    def find_flag(self, project_id: str, name: str) -> Flag:
        return access_flag(self.caller, project_id, name, archived=False)


class ScopedViewSet(ViewSet):
    """A base for models that are global or belong to one project.

    ``permission_in_project`` allows all changes there.
    """

    permission_in_project: Permission

    def check_permission(self, *, project: str | None = None, environment: str | None = None) -> None:
        for permission in self.needed_permissions:
            check_scope(self.caller, permission, self.permission_in_project, project)

    @property
    def named_project(self) -> str | None:
        """The ``project`` in the body, read before validation so that permission errors come first."""
        body = self.request.data
        named = body.get("project") if isinstance(body, dict) else None
        return named if isinstance(named, str) and named else None
