"""How much the reports of an hour may create: applications of a token, instances of an application, variants of a flag.

SDK tokens are in many hands, frontend tokens in everybody's. What goes beyond is not kept, counted, shown with the
application and by the API, and told in the log. What is there already goes on being counted, so a limit that is
reached hides no known application. Each worker counts by itself, so that a report needs no statement for it.
"""

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import Any, NamedTuple

from django.conf import settings

from projects.applications.report_plan import Known, columns
from projects.applications.usage_report import Report

log = logging.getLogger("flagadmin.reports")

APPLICATION, INSTANCE, VARIANT, IMPACT = "application", "instance", "variant", "impact metric"


class Subject(NamedTuple):
    """What a limit is of: a token (by id), or an application by name."""

    kind: str
    token: int = 0
    application: str = ""


class Allowances:
    """What was created in the hour that is running."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._hour: datetime | None = None
        self._created: Counter[Subject] = Counter()
        self._told: set[Subject] = set()

    def take(self, subject: Subject, names: Iterable[Any], limit: int, *, now: datetime) -> set[Any]:
        """Those of these names that may be created; each call counts them."""
        with self._lock:
            self._begin(now)
            left = max(0, limit - self._created[subject])
            allowed = set(sorted(names)[:left])
            self._created[subject] += len(allowed)
            return allowed

    def is_first(self, subject: Subject, *, now: datetime) -> bool:
        """Whether this is the first time in the hour that something is said of it."""
        with self._lock:
            self._begin(now)
            new = subject not in self._told
            self._told.add(subject)
            return new

    def _begin(self, now: datetime) -> None:
        hour = now.replace(minute=0, second=0, microsecond=0)
        if hour != self._hour:
            self.forget()
            self._hour = hour

    def forget(self) -> None:
        self._created.clear()
        self._told.clear()


allowances = Allowances()


@dataclass(frozen=True, slots=True)
class Allowed:
    """A report without what is beyond the limits, and how much of what that was."""

    report: Report
    ignored: Counter[Subject]


def allowed(report: Report, known: Known, *, now: datetime) -> Allowed:
    ignored: Counter[Subject] = Counter()
    applications = _ignored_applications(report, known, ignored, now)
    places = _ignored_instances(report, known, applications, ignored, now)
    if not applications and not places:
        return Allowed(report, ignored)
    kept = replace(
        report,
        instances={place: told for place, told in report.instances.items() if place not in places},
        strategies={name: told for name, told in report.strategies.items() if name not in applications},
        used={use: at for use, at in report.used.items() if use.application not in applications},
        hours={key: count for key, count in report.hours.items() if key[0].application not in applications},
    )
    return Allowed(kept, ignored)


def _ignored_applications(report: Report, known: Known, ignored: Counter[Subject], now: datetime) -> set[str]:
    """New ones beyond what the token that told of them may still create."""
    by_token: dict[int, set[str]] = {}
    for name in report.strategies.keys() - known.applications.keys():
        by_token.setdefault(report.tokens.get(name, 0), set()).add(name)
    found: set[str] = set()
    for token, names in by_token.items():
        subject = Subject(APPLICATION, token=token)
        beyond = names - allowances.take(subject, names, settings.REPORT_APPLICATIONS_LIMIT, now=now)
        if beyond:
            ignored[subject] += len(beyond)
            found |= beyond
    return found


def _ignored_instances(
    report: Report, known: Known, applications: set[str], ignored: Counter[Subject], now: datetime
) -> set[Any]:
    """All of ignored applications, and new ones beyond what their application may still get."""
    found = {place for place in report.instances if place.application in applications}
    new: dict[str, set[Any]] = {}
    for place in report.instances.keys() - known.instances.keys() - found:
        new.setdefault(place.application, set()).add(place)
    for name, places in new.items():
        subject = Subject(INSTANCE, application=name)
        beyond = places - allowances.take(subject, places, settings.REPORT_INSTANCES_LIMIT, now=now)
        if beyond:
            ignored[subject] += len(beyond)
            found |= beyond
    return found


def write_ignored(cursor: Any, ignored: Counter[Subject], *, now: datetime) -> None:
    """Adds to the counts of the hour. Written last, in key order, so that nobody waits in a circle."""
    rows = [(*subject, number) for subject, number in sorted(ignored.items()) if number]
    if not rows:
        return
    statement = """
        INSERT INTO projects_ignoredreport AS known (hour, kind, token_id, application, number)
        SELECT date_trunc('hour', %s::timestamptz, 'UTC'), told.*
          FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::bigint[]) AS told
        ON CONFLICT (hour, kind, token_id, application) DO UPDATE SET number = known.number + excluded.number
    """
    cursor.execute(statement, [now, *columns(rows, 4)])
    for subject in (subject for subject, number in ignored.items() if number):
        if allowances.is_first(subject, now=now):
            log.warning("Reports created too much this hour; what is beyond is ignored: %s", _told(subject))


def _told(subject: Subject) -> str:
    if not subject.application and not subject.token:
        return f"new {subject.kind}s"
    whose = f"application {subject.application}" if subject.application else f"token {subject.token}"
    return f"new {subject.kind}s of {whose}"
