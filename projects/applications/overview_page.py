"""/applications/: the applications of all projects that the user may read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from flagadmin.core.db.transactions import stream_rows
from flagadmin.core.lists.pages import Column, Filter
from groups.console import ListPage
from projects.applications.details import find_readable_applications, list_overview_documents
from projects.applications.filters import ApplicationFilter
from projects.applications.missing_flags import list_missing_flags
from projects.console import application_url
from projects.models import Application, Project, ProjectApplication

MAX_PROJECTS = 20  # of one application
CSV_ROWS = 500  # applications read together for a CSV file


@dataclass(frozen=True, slots=True)
class ApplicationRow:
    """An application with its readable projects, each with environments."""

    application: Application
    url: str
    usage: Sequence[dict[str, Any]]


class AllApplicationsPage(ListPage):
    template_name = "applications/overview.html"
    title = "Applications"
    csv_name = "applications"
    default_sort = "name"
    columns = (
        Column("name", "Application", by=("name",)),
        Column("projects", "Projects"),
        Column("last-seen", "Last seen", by=("last_seen", "name")),
        Column("created", "First seen", by=("created_at", "name")),
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

    def get_csv_lines(self, rows: Any) -> Iterator[Sequence[Any]]:
        applications = stream_rows(rows, CSV_ROWS)
        while part := list(islice(applications, CSV_ROWS)):
            for row, document in zip(part, list_overview_documents(self.caller, part), strict=True):
                projects = ", ".join(usage["project"] for usage in document["usage"])
                yield (row.name, projects, row.last_seen, row.created_at)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        applications = list(kwargs["listing"].rows)
        documents = list_overview_documents(self.caller, applications)
        rows = [
            ApplicationRow(application, application_url(application.name), document["usage"][:MAX_PROJECTS])
            for application, document in zip(applications, documents, strict=True)
        ]
        listing = kwargs["listing"]
        missing = [] if listing.is_filtered or listing.page.number > 1 else list_missing_flags(self.caller)
        return super().get_context_data(rows=rows, missing=missing, **kwargs)
