"""/projects/ID/activity/: the activity of one project, as a tab of its pages."""

from collections.abc import Sequence
from typing import Any

from flagadmin.console.activity import ActivityPage
from flagadmin.core.audit.models import AuditEvents
from flagadmin.core.lists.pages import Filter
from projects.console import InProjectPage
from projects.projects.head import make_project_head


class ProjectActivityPage(InProjectPage, ActivityPage):
    csv_name = "{project_id}-activity"

    def get_filters(self) -> Sequence[Filter]:
        return [field for field in super().get_filters() if field.name != "project"]

    def get_rows(self, values: dict[str, str]) -> AuditEvents:
        return super().get_rows(values | {"project": self.project.pk})

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        head = make_project_head(self.project, "project-activity", caller=self.caller)
        return super().get_context_data(**head, parent="projects/base.html", **kwargs)
