"""/projects/ID/activity/: the activity of one project, as a tab of its pages."""

from collections.abc import Sequence
from typing import Any

from flagadmin.console.activity import ActivityPage
from flagadmin.core.audit.models import AuditEvents
from flagadmin.core.lists.pages import Filter
from groups.console import Crumbs
from projects.access import access_project
from projects.console import project_crumbs
from projects.projects.head import make_project_head


class ProjectActivityPage(ActivityPage):
    def listing(self) -> Any:
        self.project = access_project(self.caller, self.kwargs["project_id"])
        self.csv_name = f"{self.project.pk}-activity"
        return super().listing()

    def crumbs(self) -> Crumbs:
        return project_crumbs(self.project)

    def get_filters(self) -> Sequence[Filter]:
        return [field for field in super().get_filters() if field.name != "project"]

    def rows(self, values: dict[str, str]) -> AuditEvents:
        return super().rows(values | {"project": self.project.pk})

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        head = make_project_head(self.project, "project-activity", caller=self.caller)
        return super().get_context_data(**head, parent="projects/base.html", **kwargs)
