"""Pages of applications: a project's, those of all readable projects, and one application."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.contrib import messages
from django.db.models import Max, OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from flagadmin.core.lists.pages import Column, Filter, curl_for
from groups.console import Breadcrumbs, ListPage, Permission
from projects.applications import queries as documents
from projects.applications.cleanup import delete_application
from projects.applications.documents import (
    access_application,
    count_ignored,
    find_evaluated_flags,
    find_instances,
    find_lines,
    find_readable_applications,
    list_overview_documents,
)
from projects.applications.queries import ApplicationFilter, ProjectApplicationFilter, list_missing_flags
from projects.applications.sdk_versions import group_sdks, read_application_adoption, read_sdk_adoption
from projects.console import PROJECTS, InProjectPage, api_path, application_url, project_url
from projects.models import Environment, Project, ProjectApplication
from projects.projects.head import make_project_head

# Column names → values of the API's ``sortBy``.
SORT_KEYS = {"name": "appName", "last-seen": "lastSeen"}
MAX_INSTANCES, MAX_SDKS, MAX_VERSIONS = (
    10,
    4,
    4,
)  # shown in a row; the page of the application has all of them


@dataclass(frozen=True, slots=True)
class Version:
    """An SDK version. ``oldest`` marks the oldest one in the project, if there are newer ones."""

    text: str
    oldest: bool


@dataclass(frozen=True, slots=True)
class ProjectApplicationRow:
    """A row of the page.

    ``instances`` and ``sdks`` are limited to the space in a row; ``unlisted`` and ``unlisted_sdks`` are the numbers
    of the others, which are on the application's page.
    """

    line: ProjectApplication
    url: str
    instances: Sequence[str]
    sdks: Sequence[tuple[str, Sequence[Version]]]
    sdk_count: int

    @property
    def unlisted(self) -> int:
        return max(0, self.line.instance_count - len(self.instances))

    @property
    def unlisted_sdks(self) -> int:
        return max(0, self.sdk_count - sum(len(versions) or 1 for _, versions in self.sdks))


class ApplicationsPage(InProjectPage, ListPage):
    template_name = "applications/applications.html"
    title = "Applications"
    csv_name = "{project_id}-applications"
    default_sort = "name"
    noun = "application,applications"
    none_yet = (
        "No application has evaluated a flag of this project yet. "
        "Applications appear here with their first report."
    )
    columns = (
        Column("name", "Application", by=("name",), cell='<a href="{{ row.url }}">{{ row.line.name }}</a>'),
        Column(
            "environments",
            "Environments",
            by=("environment_count", "name"),
            csv=lambda line: ", ".join(line.environments),
            cell='{{ row.line.environments|join:", " }}',
        ),
        Column(
            "instances",
            "Instances",
            by=("instance_count", "name"),
            cell='{% include "applications/instances.html" %}',
        ),
        Column(
            "sdks",
            "SDKs",
            by=("sdk_count", "name"),
            csv=lambda line: ", ".join(
                f"{sdk['name']} {version}" for sdk in group_sdks(line.sdks) for version in sdk["versions"]
            ),
            cell='{% include "applications/sdks.html" %}',
        ),
        Column("last-seen", "Last seen", by=("last_seen_at", "name"), cell="{{ row.line.last_seen_at|ago }}"),
    )

    def get_filters(self) -> Sequence[Filter]:
        names = Environment.objects.values_list("name", flat=True)
        return (
            Filter("q", "Name, SDK or environment"),
            Filter("environment", "Environment", [(name, name) for name in names]),
        )

    def get_rows(self, values: dict[str, str]) -> QuerySet[ProjectApplication]:
        lines = documents.find_project_applications(self.project.pk)
        lines = ProjectApplicationFilter.narrow(lines, query=values["q"])
        environment = values["environment"]
        return lines.filter(environments__contains=[environment]) if environment else lines

    def get_beginning(self) -> tuple[str, str]:
        return project_url(self.project.pk, "connect"), "Connect an SDK"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        self.shown = kwargs["listing"]
        start = (self.shown.page.number - 1) * self.per_page
        lines = documents.read_page(self.project.pk, self.shown.all_rows[start : start + self.per_page])
        return super().get_context_data(
            parent="projects/base.html",
            **make_project_head(self.project, "project-applications", caller=self.caller),
            # For the whole project, not for the filtered rows.
            adoption={} if self.shown.is_filtered or start else read_sdk_adoption(self.project.pk),
            rows=list_application_rows(self.project.pk, lines),
            list_url=f"{project_url(self.project.pk, 'project-applications')}?q=",
            days=settings.APPLICATION_INSTANCE_WINDOW.days,
            **kwargs,
        )

    def get_curl(self) -> str:
        """The API request for this page.

        The API has no environment filter, but its search covers environments.
        """
        sort = self.shown.sort
        key = sort.removeprefix("-")
        parameters = {
            "query": self.shown.query.get("q", "").strip() or self.shown.query.get("environment", "")
        }
        if sort != self.default_sort:
            parameters["sortBy"] = SORT_KEYS.get(key, key)
            parameters["sortOrder"] = "desc" if sort.startswith("-") else "asc"
        if self.shown.page.number > 1:
            parameters["offset"] = str((self.shown.page.number - 1) * self.per_page)
        query = urlencode({name: value for name, value in parameters.items() if value}, quote_via=quote)
        return curl_for(
            self.request, "GET", f"{api_path(self.project.pk)}/applications{'?' if query else ''}{query}"
        )


def list_application_rows(
    project_id: str, lines: Sequence[ProjectApplication]
) -> list[ProjectApplicationRow]:
    """The rows of a page, in two SQL statements."""
    oldest = documents.read_oldest_versions(project_id)
    return [
        ProjectApplicationRow(
            line,
            application_url(line.name),
            record["instances"][:MAX_INSTANCES],
            list(_list_sdks(record["sdks"], oldest)),
            len(line.sdks),
        )
        for line, record in zip(lines, documents.list_application_documents(project_id, lines), strict=True)
    ]


def _list_sdks(
    sdks: Iterable[dict[str, Any]], oldest: dict[str, str]
) -> Iterable[tuple[str, Sequence[Version]]]:
    """The oldest version in the project if it is among them, and the newest ones."""
    for sdk in list(sdks)[:MAX_SDKS]:
        name, versions = sdk["name"], sdk["versions"]
        listed = [version for version in versions[:-MAX_VERSIONS] if oldest.get(name) == version]
        listed += versions[-MAX_VERSIONS:]
        yield name, [Version(version, oldest.get(name) == version) for version in listed]


MAX_PROJECTS = 20  # of one application


class AllApplicationsPage(ListPage):
    template_name = "applications/overview.html"
    title = "Applications"
    lead = "Applications that have reported to flagadmin, with the projects whose flags they use."
    noun = "application,applications"
    none_yet = "No applications yet. They appear here with their first report."
    begin = ("connect-anywhere", "Connect an SDK")
    default_sort = "name"
    columns = (
        Column(
            "name",
            "Application",
            by=("name",),
            link="{{ row.page_url }}",
            below="description|truncatechars:140",
        ),
        Column(
            "projects",
            "Projects",
            csv=lambda row: ", ".join(place["project"] for place in row.places),
            cell=f'{{% for place in row.places|slice:":{MAX_PROJECTS}" %}}'
            '<a href="{% url "project-applications" place.project %}">{{ place.project }}</a> <span class="muted">in '
            '{{ place.environments|join:", " }}</span>{% if not forloop.last %}; {% endif %}'
            '{% empty %}<span class="muted">None</span>{% endfor %}',
        ),
        Column("last-seen", "Last seen", by=("last_seen", "name"), shown="ago"),
        Column("created", "First seen", by=("created_at", "name"), shown="day", css="short muted"),
    )
    filters = (Filter("q", "Name"),)
    api_call = "GET /api/admin/metrics/applications"

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        applications = ApplicationFilter.narrow(find_readable_applications(self.caller), query=values["q"])
        lines = ProjectApplication.objects.filter(
            application_id=OuterRef("pk"),
            project_id__in=Project.objects.readable_by(self.caller).values("pk"),
        )
        seen = lines.order_by("-last_seen_at").values("last_seen_at")[:1]
        return applications.annotate(last_seen=Subquery(seen))

    def complete(self, rows: list[Any]) -> list[Any]:
        """Each with its readable projects, each with environments."""
        for row, document in zip(rows, list_overview_documents(self.caller, rows), strict=True):
            row.page_url, row.places = application_url(row.name), document["usage"]
        return rows

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        listing = kwargs["listing"]
        missing = [] if listing.is_filtered or listing.page.number > 1 else list_missing_flags(self.caller)
        return super().get_context_data(missing=missing, **kwargs)


class ApplicationPage(ListPage):
    """Lists the flags used, by environment, and the instances. POST deletes the application."""

    title = "{page.application.name}"
    template_name = "applications/application.html"
    csv_name = "application"
    default_sort = "flag"
    noun = "flag by environment,flags by environment"
    none_yet = "No evaluations of flags that you can see."
    nothing_found = "No flags match these filters."
    columns = (
        Column(
            "flag",
            "Flag",
            by=("flag_name", "environment"),
            cell='<a href="{% url "flag" row.project row.flag_name %}">{{ row.flag_name }}</a>'
            '{% if row.archived %} <span class="pill warn">archived</span>{% endif %}',
        ),
        Column(
            "project",
            "Project",
            by=("project", "flag_name", "environment"),
            link='{% url "project" row.project %}',
        ),
        Column("environment", "Environment", by=("environment", "flag_name")),
        Column("last-evaluated", "Last evaluated", by=("last_used_at", "flag_name"), shown="ago"),
    )
    api_call = "GET /api/admin/metrics/applications/{name}"

    def find(self) -> None:
        self.application = access_application(self.caller, self.kwargs["name"])
        self.usage = find_evaluated_flags(self.caller, self.application)

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
            Filter("q", "Flag", by=("flag_name",)),
            Filter(
                "environment",
                "Environment",
                [(name, name) for name in sorted(environments)],
                by=("environment",),
            ),
        )

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        return self.usage

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        instances = find_instances(self.application)
        count, last_seen = instances.count(), instances.aggregate(last=Max("seen_at"))["last"]
        listed = list(instances[: settings.APPLICATION_INSTANCES_LISTED])
        return super().get_context_data(
            application=self.application,
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
