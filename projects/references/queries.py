"""Reads the places of flags in code."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from flagadmin.core.document import Document
from projects.models import CodeReference, CodeReport


@dataclass(frozen=True, slots=True)
class Place:
    path: str
    line: int
    url: str


@dataclass(frozen=True, slots=True)
class InRepository:
    """A flag in a repository: the first places, and the total number."""

    report: CodeReport
    places: Sequence[Place]
    count: int

    @property
    def more(self) -> int:
        return self.count - len(self.places)


def read_references(flag_ids: Sequence[int]) -> dict[int, list[InRepository]]:
    """The repositories that contain each flag. One query."""
    references: dict[int, list[InRepository]] = defaultdict(list)
    rows = CodeReference.objects.filter(flag__in=flag_ids).select_related("report")
    for row in rows.order_by("report__repository"):
        places = [Place(path, line, _make_url(row.report, path, line)) for path, line in row.places]
        references[row.flag_id].append(InRepository(row.report, places, row.count))
    return references


def _make_url(report: CodeReport, path: str, line: int) -> str:
    """Quotes paths and revisions, because they are data and must stay part of the URL."""
    if not report.link:
        return ""
    values = {"path": quote(path), "line": str(line), "revision": quote(report.revision, safe="")}
    url = report.link
    for name, value in values.items():
        url = url.replace(f"{{{name}}}", value)
    return url


def make_reference_documents(references: Sequence[InRepository]) -> list[Document]:
    return [
        {
            "repository": each.report.repository,
            "revision": each.report.revision,
            "count": each.count,
            "places": [
                {"path": place.path, "line": place.line, "url": place.url or None} for place in each.places
            ],
        }
        for each in references
    ]
