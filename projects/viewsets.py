"""View sets of what lies in a project or on a flag: they look up what the URL names, and what may be done there."""

from typing import Any

from groups.viewsets import ViewSet
from projects.access import access_flag, access_project
from projects.flags.toggle import project_environment
from projects.models import Flag, Project


class InProjectViewSet(ViewSet):
    """Below ``projects/<str:project_id>``. A project that the caller may not read is not found."""

    project: Project

    def authorise(self, project_id: str, *args: Any, **kwargs: Any) -> None:
        self.project = access_project(self.caller, project_id)
        self.check_permission(project=project_id)


class OnFlagViewSet(ViewSet):
    """Below ``projects/<str:project_id>/features/<str:name>``: an active flag, and the environment if one is named."""

    flag: Flag

    def authorise(
        self, project_id: str, name: str, environment: str | None = None, *args: Any, **kwargs: Any
    ) -> None:
        self.flag = access_flag(self.caller, project_id, name, archived=False)
        self.check_permission(project=project_id, environment=environment)
        if environment is not None:
            project_environment(project_id, environment)
