"""Stores the places of flags in the code of a repository.

Reads the places of flags in code.

Rules for reports of references in code.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from flagadmin.core.audit.record import Event, EventType, read_transaction_time, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import NoAccess, Problem, ValidationError, check_problems
from groups.access import Caller, Permission
from projects.models import CodeReference, CodeReport, Flag, FlagQuerySet, Project

Found = Mapping[str, Sequence[Mapping[str, Any]]]


@transactional
def report_references(
    repository: str, values: Mapping[str, Any], references: Found, *, caller: Caller
) -> dict[str, int]:
    """Replaces the repository's last report, for the flags that the caller may update.

    ``references`` are the places of each flag, ``{path, line}``. Returns the numbers of stored and ignored flags.
    Raises NoAccess, ValidationError.
    """
    check_may_report(caller)
    check_problems(report_problems(values))
    reportable = find_reportable_flags(caller)
    report = _access_report_for_update(repository)
    report.revision, report.link = values.get("revision") or "", values.get("link") or ""
    report.reported_at, report.reported_by = read_transaction_time(), caller.name
    report.save()
    ids = dict(reportable.filter(name__in=list(references)).values_list("name", "pk"))
    report.references.filter(flag__in=reportable).delete()
    CodeReference.objects.bulk_create(
        CodeReference(
            report=report,
            flag_id=ids[name],
            count=len(places),
            places=[[place["path"], place["line"]] for place in places[:MAX_PLACES]],
        )
        for name, places in references.items()
        if name in ids and places
    )
    counts = {"flags": len(ids), "ignored": len(references) - len(ids)}
    event = Event(type=EventType.CODE_REFERENCES_REPORTED, subject=repository, after=counts)
    record(event, actor=caller)
    return counts


def find_reportable_flags(caller: Caller) -> FlagQuerySet:
    """The active flags that the caller may update."""
    return Flag.objects.active().filter(project__in=_list_projects(caller))


def check_may_report(caller: Caller) -> None:
    """Raises NoAccess for a caller who may not update flags in any project."""
    if not _list_projects(caller):
        raise NoAccess.missing([Permission.UPDATE_FEATURE], "You cannot update flags in any project.")


def _list_projects(caller: Caller) -> list[str]:
    readable = Project.objects.readable_by(caller).values_list("pk", flat=True)
    return [pk for pk in readable if caller.can(Permission.UPDATE_FEATURE, project=pk)]


def _access_report_for_update(repository: str) -> CodeReport:
    report = CodeReport.objects.select_for_update().filter(repository=repository).first()
    if report is None and CodeReport.objects.count() >= MAX_REPORTS:
        raise ValidationError.at("repository", f"there are {MAX_REPORTS:,} repositories already, the limit")
    return report or CodeReport(repository=repository)


@dataclass(frozen=True, slots=True)
class Place:
    path: str
    line: int
    url: str | None


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


def _make_url(report: CodeReport, path: str, line: int) -> str | None:
    """Quotes paths and revisions, because they are data and must stay part of the URL."""
    if not report.link:
        return None
    values = {"path": quote(path), "line": str(line), "revision": quote(report.revision, safe="")}
    url = report.link
    for name, value in values.items():
        url = url.replace(f"{{{name}}}", value)
    return url


MAX_REPORTS = 1_000
MAX_PLACES = 100
"""The maximum number of stored places of a flag in a repository; others are only counted."""
MAX_PATH = 500
_FIELD = re.compile(r"\{(\w*)\}")
LINK_FIELDS = ("path", "line", "revision")


def report_problems(values: Mapping[str, Any]) -> Iterator[Problem]:
    if link := values.get("link"):
        try:
            is_address = urlsplit(link).scheme in ("http", "https") and bool(urlsplit(link).hostname)
        except ValueError:
            is_address = False
        if not is_address:
            yield Problem("link", "must be an address that begins with http:// or https://")
        if unknown := set(_FIELD.findall(link)) - set(LINK_FIELDS):
            yield Problem("link", f"has no {{{min(unknown)}}}, only {{path}}, {{line}} and {{revision}}")
