"""Counts a report once that may be sent several times: relays send theirs until they are acknowledged."""

import hashlib
from datetime import timedelta

from django.utils import timezone

from flagadmin.core.db.statements import execute
from flagadmin.core.db.transactions import transactional
from projects.applications.store_report import store_report
from projects.applications.usage_report import UsageReport
from projects.models import CountedReport
from sdk.reports.batcher import ALONE, REPORTS

ID_HEADER = "Flagadmin-Report-Id"
KEPT = timedelta(days=30)

_NOTE = "INSERT INTO projects_countedreport (digest) VALUES (%s) ON CONFLICT DO NOTHING"


@transactional
def count_once(report: UsageReport, identifier: str, *, token: int) -> None:
    """Stores the report unless one with this id has come with the token of this id."""
    digest = hashlib.sha256(f"{token} {identifier}".encode()).hexdigest()
    is_new = execute(_NOTE, [digest]) == 1
    if is_new:
        store_report(report.with_token(token), lock_wait=ALONE)
        REPORTS.labels("accepted").inc()


def forget_reports() -> None:
    CountedReport.objects.filter(counted_at__lt=timezone.now() - KEPT).delete()
