"""Hourly limits on the applications of a token, the instances of an application and the variants of a flag.

Limits are needed because many users know SDK tokens, and frontend tokens are public. Items beyond a limit are not
stored but counted, like invalid ones. The counts are logged and shown on the application's page and in the API.
Existing applications and instances are not limited. Each worker counts separately, which needs no database statement.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import Any, NamedTuple

from django.conf import settings

from projects.applications.usage_report import StoredUsage, UsageReport, make_columns

log = logging.getLogger("flagadmin.reports")

APPLICATION, INSTANCE, VARIANT, IMPACT = "application", "instance", "variant", "impact metric"
UNKNOWN_FLAG, FLAG_COUNT = "unknown flag", "flag count"


class Subject(NamedTuple):
    """The subject of a limit: a token (by id) or an application (by name)."""

    kind: str
    token: int = 0
    application: str = ""


class HourlyQuota:
    """The names created in the current hour, by subject."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._hour: datetime | None = None
        self._created: Counter[Subject] = Counter()
        self._logged: set[Subject] = set()

    def take(self, subject: Subject, names: Iterable[Any], limit: int, *, now: datetime) -> set[Any]:
        """The names that may still be created. They count towards the limit."""
        with self._lock:
            self._begin(now)
            left = max(0, limit - self._created[subject])
            allowed = set(sorted(names)[:left])
            self._created[subject] += len(allowed)
            return allowed

    def is_first(self, subject: Subject, *, now: datetime) -> bool:
        """Whether this is the first call for this subject in the current hour."""
        with self._lock:
            self._begin(now)
            new = subject not in self._logged
            self._logged.add(subject)
            return new

    def _begin(self, now: datetime) -> None:
        hour = now.replace(minute=0, second=0, microsecond=0)
        if hour != self._hour:
            self.forget()
            self._hour = hour

    def forget(self) -> None:
        self._created.clear()
        self._logged.clear()


quota = HourlyQuota()


@dataclass(frozen=True, slots=True)
class LimitedReport:
    """A report without the items that exceed the limits, and the counts of the removed items."""

    report: UsageReport
    ignored: Counter[Subject]


def limit_report(report: UsageReport, known: StoredUsage, *, now: datetime) -> LimitedReport:
    ignored: Counter[Subject] = Counter()
    applications = _find_ignored_applications(report, known, ignored, now)
    places = _find_ignored_instances(report, known, applications, ignored, now)
    if not applications and not places:
        return LimitedReport(report, ignored)
    limited = replace(
        report,
        instances={place: reported for place, reported in report.instances.items() if place not in places},
        strategies={
            name: reported for name, reported in report.strategies.items() if name not in applications
        },
        used={use: at for use, at in report.used.items() if use.application not in applications},
        hours={key: count for key, count in report.hours.items() if key[0].application not in applications},
    )
    return LimitedReport(limited, ignored)


def _find_ignored_applications(
    report: UsageReport, known: StoredUsage, ignored: Counter[Subject], now: datetime
) -> set[str]:
    """New applications beyond the limit of the token that reported them."""
    new: dict[Subject, set[str]] = {}
    for name in report.strategies.keys() - known.applications.keys():
        new.setdefault(Subject(APPLICATION, token=report.tokens.get(name, 0)), set()).add(name)
    return _find_beyond(new, settings.REPORT_APPLICATIONS_LIMIT, ignored, now)


def _find_ignored_instances(
    report: UsageReport, known: StoredUsage, applications: set[str], ignored: Counter[Subject], now: datetime
) -> set[Any]:
    """All instances of ignored applications, and new ones beyond the limit of their application."""
    instances = {key for key in report.instances if key.application in applications}
    new: dict[Subject, set[Any]] = {}
    for place in report.instances.keys() - known.instances.keys() - instances:
        new.setdefault(Subject(INSTANCE, application=place.application), set()).add(place)
    return instances | _find_beyond(new, settings.REPORT_INSTANCES_LIMIT, ignored, now)


def _find_beyond(
    new: Mapping[Subject, set[Any]], limit: int, ignored: Counter[Subject], now: datetime
) -> set[Any]:
    """The new ones beyond the limit of their subject, which are counted."""
    beyond: set[Any] = set()
    for subject, names in new.items():
        over = names - quota.take(subject, names, limit, now=now)
        ignored[subject] += len(over)
        beyond |= over
    return beyond


def write_ignored(cursor: Any, ignored: Counter[Subject], *, now: datetime) -> None:
    """Adds to the counts of the hour. Written last and in key order, which prevents deadlocks."""
    rows = [(*subject, number) for subject, number in sorted(ignored.items()) if number]
    if not rows:
        return
    statement = """
        INSERT INTO projects_ignoredreport AS known (hour, kind, token_id, application, number)
        SELECT date_trunc('hour', %s::timestamptz, 'UTC'), reported.*
          FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::bigint[]) AS reported
        ON CONFLICT (hour, kind, token_id, application) DO UPDATE SET number = known.number + excluded.number
    """
    cursor.execute(statement, [now, *make_columns(rows, 4)])
    for subject in (subject for subject, number in ignored.items() if number):
        if quota.is_first(subject, now=now):
            log.warning(
                "Reports exceeded a limit this hour, or were invalid. Ignored: %s", _describe(subject)
            )


def _describe(subject: Subject) -> str:
    if not subject.application and not subject.token:
        return f"new {subject.kind}s"
    owner = f"application {subject.application}" if subject.application else f"token {subject.token}"
    return f"new {subject.kind}s of {owner}"
