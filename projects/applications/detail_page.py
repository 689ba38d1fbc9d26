"""/applications/NAME/: shows the flags and instances of an application, and deletes it."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import Max, QuerySet
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from flagadmin.core.lists.pages import Column, Filter
from groups.console import Breadcrumbs, ListPage
from groups.permissions import Permission
from projects.applications.actions import delete_application
from projects.applications.adoption import read_application_adoption
from projects.applications.details import access_application, find_evaluated_flags, find_instances, find_lines
from projects.applications.ignored_reports import count_ignored
from projects.applications.missing_flags import list_missing_flags
from projects.console import PROJECTS, flag_url, project_url


class ApplicationPage(ListPage):
    """Lists the flags used, by environment, and the instances. POST deletes the application."""

    template_name = "applications/application.html"
    csv_name = "application"
    default_sort = "flag"
    columns = (
        Column("flag", "Flag", by=("flag_name", "environment")),
        Column("project", "Project", by=("project", "flag_name", "environment")),
        Column("environment", "Environment", by=("environment", "flag_name")),
        Column("last-evaluated", "Last evaluated", by=("last_used_at", "flag_name")),
    )
    api_call = "GET /api/admin/metrics/applications/{name}"

    def find(self) -> None:
        self.application = access_application(self.caller, self.kwargs["name"])
        self.usage = find_evaluated_flags(self.caller, self.application)

    def get_title(self) -> str:
        return self.application.name

    def get_breadcrumbs(self) -> Breadcrumbs:
        lines = list(find_lines(self.caller, self.application)[:2])
        if len(lines) != 1:
            return (("Applications", reverse("applications")),)
        project_id = lines[0].project_id
        return (
            PROJECTS,
            (project_id, project_url(project_id)),
            ("Applications", project_url(project_id, "project-applications")),
        )

    def get_filters(self) -> Sequence[Filter]:
        environments = self.usage.order_by().values_list("environment", flat=True).distinct()
        return (
            Filter("q", "Flag"),
            Filter("environment", "Environment", [(name, name) for name in sorted(environments)]),
        )

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        usage = self.usage
        if values["q"]:
            usage = usage.filter(flag_name__icontains=values["q"])
        return usage.filter(environment=values["environment"]) if values["environment"] else usage

    def get_csv_cells(self, row: Any) -> Sequence[Any]:
        return (row.flag_name, row.project, row.environment, row.last_used_at)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        instances = find_instances(self.application)
        count, last_seen = instances.count(), instances.aggregate(last=Max("seen_at"))["last"]
        listed = list(instances[: settings.APPLICATION_INSTANCES_LISTED])
        rows = kwargs["listing"].rows
        return super().get_context_data(
            application=self.application,
            rows=[(row, flag_url(row.project, row.flag_name)) for row in rows],
            instances=listed,
            instance_count=count,
            unlisted=count - len(listed),
            last_seen=last_seen,
            projects=[
                (line, project_url(line.project_id)) for line in find_lines(self.caller, self.application)
            ],
            adoption=read_application_adoption(self.application.pk),
            missing=list_missing_flags(self.caller, self.application),
            days=settings.APPLICATION_INSTANCE_WINDOW.days,
            ignored=count_ignored(self.application),
            may_delete=self.caller.can(Permission.UPDATE_APPLICATION),
            **kwargs,
        )

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.application = access_application(self.caller, self.kwargs["name"])
        _, after = self.get_breadcrumbs()[-1]
        delete_application(self.application.name, caller=self.caller)
        messages.success(request, f"Deleted application {self.application.name}.")
        return HttpResponseRedirect(str(after))
