"""Parses and sorts SDK strings such as ``unleash-node-sdk:6.12.1``, and counts instances by version.

The most used versions are counted separately, the others in total.

Hourly limits on the applications of a token, the instances of an application and the variants of a flag.

Limits are needed because many users know SDK tokens, and frontend tokens are public. Items beyond a limit are not
stored but counted, like invalid ones. The counts are logged and shown on the application's page and in the API.
Existing applications and instances are not limited. Each worker counts separately, which needs no database statement.
"""

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import Any, NamedTuple

from django.conf import settings
from django.utils import timezone

from flagadmin.core.db.statements import fetch_rows
from projects.applications.usage_report import StoredUsage, UsageReport, make_columns

_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)(.*)", re.DOTALL)
_DIGITS = re.compile(r"(\d+)")


def split_sdk(sdk: str) -> tuple[str, str]:
    """(name, version) of an SDK string; the version may be ""."""
    name, _, rest = sdk.partition(":")
    return name, rest.partition(":")[0]


def format_sdk(sdk: str) -> str:
    """``unleash-node-sdk 6.12.1``"""
    return " ".join(filter(None, split_sdk(sdk)))


def group_sdks(sdks: Iterable[str]) -> list[dict[str, Any]]:
    """``[{"name", "versions"}]``: names in code-point order, versions in version order."""
    versions: dict[str, set[str]] = defaultdict(set)
    for name, version in map(split_sdk, sdks):
        versions[name].update([version] if version else [])
    return [{"name": name, "versions": sorted(versions[name], key=version_key)} for name in sorted(versions)]


def is_version(text: str) -> bool:
    return _NUMBERS.fullmatch(text) is not None


def is_release(text: str) -> bool:
    """Whether it is a version other than a pre-release such as 6.0.0-beta.1."""
    return is_version(text) and version_key(text)[2]


def version_key(version: str) -> tuple[Any, ...]:
    """A sort key: 5.9.0 < 5.10.0 and 6.0.0-beta.2 < 6.0.0-beta.10 < 6.0.0. Invalid versions come last."""
    match = _NUMBERS.fullmatch(version)
    if match is None:
        return (1, (), False, _make_natural_key(version), version)
    numbers = [int(number) for number in match[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    is_release = not match[2] or match[2].startswith("+")
    return (0, tuple(numbers), is_release, _make_natural_key(match[2]), version)


def _make_natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key that compares runs of digits by value and everything else by code point."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(text))


MAX_INSTANCES = 20_000  # counted instances; of more, an equal share per application
MAX_READ = 1_000
MAX_SDKS = 8
MAX_VERSIONS = 12
OTHERS = "Other SDKs and versions"

# Distinct pairs are hashed; count(DISTINCT …) would sort all instances. ``most`` is null if all are counted.
_COUNTED = """
SELECT sdk_version, number, (sum(number) OVER ())::bigint, count(*) OVER (), sampled FROM (
       SELECT sdk_version, sampled, count(*) AS number FROM (
              SELECT DISTINCT i.sdk_version, i.instance_id, line.most IS NOT NULL AS sampled
                FROM ({lines}) AS line CROSS JOIN LATERAL (
                     SELECT sdk_version, instance_id FROM projects_applicationinstance
                      WHERE application_id = line.application_id AND seen_at >= %(since)s AND sdk_version <> ''
                        AND (line.environments IS NULL OR environment = ANY(line.environments))
                      ORDER BY instance_id LIMIT line.most) AS i) AS pairs GROUP BY 1, 2) AS counted
 ORDER BY number DESC, sdk_version LIMIT %(versions)s
"""
_OF_PROJECT = """
SELECT application_id, environments, CASE WHEN total > %(instances)s THEN
       ceil(%(instances)s * instance_count / total) END::bigint AS most
  FROM (SELECT *, sum(instance_count) OVER () AS total FROM projects_projectapplication
         WHERE project_id = %(key)s) AS lines"""
_OF_APPLICATION = """
SELECT %(key)s::bigint AS application_id, NULL::text[] AS environments, CASE WHEN (
       SELECT count(*) FROM (SELECT FROM projects_applicationinstance WHERE application_id = %(key)s
                              LIMIT %(instances)s + 1) AS first) > %(instances)s THEN %(instances)s END AS most"""


class Adoption(dict[str, list[tuple[str, int, bool]]]):
    """The versions of each SDK: (version, instances, whether it is the oldest of several), the newest first.

    ``sampled``: the number of counted instances, if there are too many to count all; otherwise 0.
    """

    sampled = 0


def read_sdk_adoption(project_id: str) -> Adoption:
    """The instances of a project's applications. One query.

    The most used versions, and the oldest; the last line of an SDK sums up the others.
    """
    return _read_adoption(_OF_PROJECT, project_id)


def read_application_adoption(application_id: int) -> Adoption:
    """The same for the instances of one application. One query."""
    return _read_adoption(_OF_APPLICATION, application_id)


def _read_adoption(lines: str, key: Any) -> Adoption:
    parameters = {
        "key": key,
        "since": timezone.now() - settings.APPLICATION_INSTANCE_WINDOW,
        "instances": MAX_INSTANCES,
        "versions": MAX_READ,
    }
    rows = fetch_rows(_COUNTED.format(lines=lines), parameters)
    numbers: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for sdk, number, *_ in rows:
        name, version = split_sdk(sdk)
        numbers[name][version] += number
    most_used = sorted(numbers, key=lambda name: -sum(numbers[name].values()))[:MAX_SDKS]
    adoption = Adoption(
        (name, _make_lines(numbers[name])) for name in sorted(most_used) if any(numbers[name])
    )
    if rows and (remainder := _sum_others(rows, numbers, most_used)):
        adoption[OTHERS] = [remainder]
    adoption.sampled = rows[0][2] if rows and rows[0][4] else 0
    return adoption


def _make_lines(numbers: dict[str, int]) -> list[tuple[str, int, bool]]:
    versions = sorted(filter(None, numbers), key=version_key, reverse=True)
    known = [version for version in versions if is_version(version)]
    oldest = known[-1] if len(known) > 1 else None
    shown_versions = set(sorted(versions, key=lambda version: -numbers[version])[:MAX_VERSIONS]) | {oldest}
    lines = [
        (version, numbers[version], version == oldest) for version in versions if version in shown_versions
    ]
    if rest := [numbers[version] for version in versions if version not in shown_versions]:
        lines.append((f"{len(rest):,} more", sum(rest), False))
    return lines


def _sum_others(
    rows: Sequence[tuple[str, int, int, int, bool]], numbers: dict[str, dict[str, int]], shown_sdks: list[str]
) -> tuple[str, int, bool] | None:
    """Sums up the versions that were not read, and those of SDKs without a chart."""
    _, _, instances, versions, _ = rows[0]
    left = [number for name in numbers if name not in shown_sdks for number in numbers[name].values()]
    unread = versions - len(rows)
    if not left and not unread:
        return None
    return f"{len(left) + unread:,} more", sum(left) + instances - sum(row[1] for row in rows), False


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
