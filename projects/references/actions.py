"""Stores the places of flags in the code of a repository."""

from collections.abc import Mapping, Sequence
from typing import Any

from flagadmin.core.audit.record import Event, EventType, read_transaction_time, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import NoAccess, ValidationError, check_problems
from groups.access import Caller, Permission
from projects.models import CodeReference, CodeReport, Flag, FlagQuerySet, Project
from projects.references.rules import MAX_PLACES, MAX_REPORTS, report_problems

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
