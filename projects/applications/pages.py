"""/projects/ID/applications/: the applications that use a project."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.db.models import QuerySet

from flagadmin.core.lists.pages import Column, Filter, curl_for
from groups.console import ListPage
from projects.applications import queries as documents
from projects.applications.adoption import read_sdk_adoption
from projects.applications.filters import ProjectApplicationFilter
from projects.applications.sdk_versions import group_sdks
from projects.console import InProjectPage, api_path, application_url, project_url
from projects.models import Environment, ProjectApplication
from projects.projects.head import make_project_head

# Column names → values of the API's ``sortBy``.
SORT_KEYS = {"name": "appName", "last-seen": "lastSeen"}
MAX_INSTANCES, MAX_SDKS, MAX_VERSIONS = 10, 4, 4  # of a row; the page of the application has more


@dataclass(frozen=True, slots=True)
class Version:
    """An SDK version. ``oldest`` marks the oldest one in the project, if there are newer ones."""

    text: str
    oldest: bool


@dataclass(frozen=True, slots=True)
class ApplicationRow:
    """A row of the page.

    ``instances`` and ``sdks`` have as many as a row has room for; ``unlisted`` and ``unlisted_sdks`` are the
    numbers of the others, which the page of the application has.
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
    columns = (
        Column("name", "Application", by=("name",)),
        Column("environments", "Environments", by=("environment_count", "name")),
        Column("instances", "Instances", by=("instance_count", "name")),
        Column("sdks", "SDKs", by=("sdk_count", "name")),
        Column("last-seen", "Last seen", by=("last_seen_at", "name")),
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

    def get_csv_cells(self, row: ProjectApplication) -> Sequence[Any]:
        sdks = [f"{sdk['name']} {version}" for sdk in group_sdks(row.sdks) for version in sdk["versions"]]
        return (
            row.name,
            ", ".join(row.environments),
            row.instance_count,
            ", ".join(sdks),
            row.last_seen_at,
        )

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        self.shown = kwargs["listing"]
        start = (self.shown.page.number - 1) * self.per_page
        lines = documents.read_page(self.project.pk, self.shown.all_rows[start : start + self.per_page])
        return super().get_context_data(
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


def list_application_rows(project_id: str, lines: Sequence[ProjectApplication]) -> list[ApplicationRow]:
    """The rows of a page, in two SQL statements."""
    oldest = documents.read_oldest_versions(project_id)
    return [
        ApplicationRow(
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
