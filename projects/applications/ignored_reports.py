"""Reads the counts of reported items that exceeded a limit in the last two days and were not stored."""

from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from flagadmin.core.document import Document
from flagadmin.core.http.timestamps import iso
from groups.access import Caller
from groups.models import ApiToken
from projects.applications.details import find_readable_applications
from projects.applications.usage_report import HOURS_KEPT
from projects.models import Application, IgnoredReport


def count_ignored(application: Application) -> dict[str, int]:
    """Counts by kind, without zeros: ``{"instance": 3, "variant": 19900}``."""
    rows = _find_recent_reports().filter(application=application.name).order_by()
    return dict(rows.values("kind").annotate(total=Sum("number")).values_list("kind", "total"))


def list_ignored_documents(caller: Caller) -> list[Document]:
    """Latest hour first. Counts of tokens are only for callers who may read all projects."""
    of_tokens = Q() if caller.readable_projects is None else ~Q(application="")
    names = find_readable_applications(caller).values("name")
    rows = _find_recent_reports().filter(Q(application="") | Q(application__in=names)).filter(of_tokens)
    rows = rows.order_by("-hour", "kind", "token_id", "application")
    tokens = dict(ApiToken.objects.filter(pk__in=rows.values("token_id")).values_list("pk", "name"))
    return [
        {
            "hour": iso(row.hour),
            "kind": row.kind,
            "tokenName": tokens.get(row.token_id),
            "appName": row.application or None,
            "count": row.number,
        }
        for row in rows[:1000]
    ]


def _find_recent_reports() -> QuerySet[IgnoredReport]:
    return IgnoredReport.objects.filter(hour__gt=timezone.now() - HOURS_KEPT)
