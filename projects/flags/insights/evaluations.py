"""Counts evaluations of flags, as SDKs reported them: by hour, by day, and in total.

Reads which applications use a flag and how often, to help users decide whether to archive it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import orjson
from django.utils import timezone

from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from projects.models import Flag, FlagLastSeen

HOURS, DAYS = 24, 30
ONLINE = timedelta(minutes=10)
"""An instance seen within this time is online. SDKs report every minute by default."""

# The counts by time, then the variants of the whole period.
_SUMS = """
SELECT environment, at, sum(yes)::bigint, sum(no)::bigint, NULL FROM counted GROUP BY 1, 2
UNION ALL
SELECT environment, NULL, sum(value::bigint)::bigint, NULL, key
  FROM counted, jsonb_each_text(variants) GROUP BY environment, key
"""
_BY_HOUR = f"""
WITH counted AS (
    SELECT environment, hour AS at, yes, no, variants FROM projects_usagehour
     WHERE flag_id = %s AND environment = ANY(%s) AND hour >= %s
) {_SUMS}
"""  # noqa: S608 - a constant
_BY_DAY = f"""
WITH counted AS (
    SELECT environment, (hour AT TIME ZONE 'UTC')::date AS at, yes, no, variants FROM projects_usagehour
     WHERE flag_id = %s AND environment = ANY(%s) AND hour >= %s
    UNION ALL
    SELECT environment, day, yes, no, variants FROM projects_usageday
     WHERE flag_id = %s AND environment = ANY(%s) AND day >= %s
) {_SUMS}
"""  # noqa: S608 - a constant

_OF_FLAGS = """
SELECT flag_id, environment, day, sum(yes)::bigint, sum(no)::bigint FROM (
    SELECT flag_id, environment, (hour AT TIME ZONE 'UTC')::date AS day, yes, no FROM projects_usagehour
     WHERE flag_id = ANY(%s) AND hour >= %s
    UNION ALL
    SELECT flag_id, environment, day, yes, no FROM projects_usageday WHERE flag_id = ANY(%s) AND day >= %s
) counted GROUP BY 1, 2, 3 ORDER BY 3
"""


@dataclass(slots=True)
class Count:
    """The evaluations in the hour or on the day that begins at this time (UTC)."""

    at: datetime
    yes: int = 0
    no: int = 0


@dataclass(slots=True)
class Evaluations:
    """The evaluations of a flag in an environment over a period: one count per hour or day, oldest first.

    ``variants`` has the number of times that each variant was returned, most frequent first.
    """

    counts: list[Count]
    variants: dict[str, int] = field(default_factory=dict)

    @property
    def yes(self) -> int:
        return sum(count.yes for count in self.counts)

    @property
    def no(self) -> int:
        return sum(count.no for count in self.counts)

    @property
    def total(self) -> int:
        return self.yes + self.no

    @property
    def percent_on(self) -> float | None:
        """The percentage of evaluations that were on; None without any."""
        return self.yes / self.total * 100 if self.total else None


def read_evaluations_by_hour(
    flag_id: int, environments: Sequence[str], *, now: datetime | None = None
) -> dict[str, Evaluations]:
    """The last 24 hours, the current one included, of a flag in each of these environments. One query."""
    last = (now or timezone.now()).astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    hours = [last - timedelta(hours=back) for back in reversed(range(HOURS))]
    rows = fetch_rows(_BY_HOUR, [flag_id, list(environments), hours[0]])
    return _fill(environments, hours, rows)


def read_evaluations_by_day(
    flag_id: int, environments: Sequence[str], *, days: int = DAYS, now: datetime | None = None
) -> dict[str, Evaluations]:
    """The last days (UTC), today included, of a flag in each of these environments. One query."""
    today = datetime.combine((now or timezone.now()).astimezone(UTC).date(), time(), UTC)
    times = [today - timedelta(days=back) for back in reversed(range(days))]
    names = list(environments)
    rows = fetch_rows(_BY_DAY, [flag_id, names, times[0], flag_id, names, times[0].date()])
    return _fill(environments, times, rows)


def read_counts_of_flags(flag_ids: Iterable[int], since: datetime) -> dict[tuple[int, str], list[Count]]:
    """The counts of the days (UTC) with evaluations since then, by flag and environment, oldest first. One query."""
    ids, counts = list(flag_ids), dict[tuple[int, str], list[Count]]()
    for flag_id, environment, day, yes, no in fetch_rows(_OF_FLAGS, [ids, since, ids, since.date()]):
        counts.setdefault((flag_id, environment), []).append(Count(_make_moment(day), yes, no))
    return counts


def _fill(
    environments: Iterable[str], times: Sequence[datetime], rows: Iterable[tuple[Any, ...]]
) -> dict[str, Evaluations]:
    evaluations = {name: Evaluations([Count(at) for at in times]) for name in environments}
    places = {
        (name, count.at): count
        for name, in_environment in evaluations.items()
        for count in in_environment.counts
    }
    for environment, at, yes, no, variant in rows:
        if variant is not None:
            evaluations[environment].variants[variant] = yes
        elif count := places.get((environment, _make_moment(at))):
            count.yes, count.no = yes, no
    for in_environment in evaluations.values():
        in_environment.variants = dict(
            sorted(in_environment.variants.items(), key=lambda item: (-item[1], item[0]))
        )
    return evaluations


def _make_moment(at: datetime | date) -> datetime:
    return at.astimezone(UTC) if isinstance(at, datetime) else datetime.combine(at, time(), UTC)


def read_last_evaluations(flag_ids: Iterable[int]) -> dict[int, dict[str, datetime]]:
    """Reads when SDKs last reported each flag, by environment. One query.

    ``max(times[flag_id].values(), default=None)`` is the last time in any environment.
    """
    times: dict[int, dict[str, datetime]] = {flag_id: {} for flag_id in flag_ids}
    rows = FlagLastSeen.objects.filter(flag_id__in=list(times))
    for flag_id, environment, seen_at in rows.values_list("flag_id", "environment", "seen_at"):
        times[flag_id][environment] = seen_at
    return times


@dataclass(frozen=True, slots=True)
class LastEvaluation:
    environment: str
    at: datetime


def find_last_evaluation(flag_ids: Iterable[int], environment: str = "") -> LastEvaluation | None:
    """The latest evaluation of any of these flags, in any environment if none is given. One query.

    It outlives the stored data of the application that reported it.
    """
    rows = FlagLastSeen.objects.filter(flag_id__in=list(flag_ids)).order_by("-seen_at")
    rows = rows.filter(environment=environment) if environment else rows
    last = rows.values_list("environment", "seen_at").first()
    return LastEvaluation(*last) if last else None


_USERS = """
SELECT u.flag_id, a.name, u.environment, u.last_used_at
  FROM projects_flagusage u JOIN projects_application a ON a.id = u.application_id
 WHERE u.flag_id = ANY(%s) ORDER BY u.flag_id, u.last_used_at DESC, a.name, u.environment
"""
_HOURS = """
SELECT h.environment, h.hour, sum(h.yes)::bigint, sum(h.no)::bigint
  FROM projects_usagehour h WHERE h.flag_id = %s AND h.hour > %s GROUP BY 1, 2 ORDER BY 2, 1
"""
_RAW = """
SELECT a.name, h.environment, h.hour, h.yes, h.no, h.variants
  FROM projects_usagehour h JOIN projects_application a ON a.id = h.application_id
 WHERE h.flag_id = %s AND h.hour > %s ORDER BY h.hour, h.environment, a.name
"""


@dataclass(frozen=True, slots=True)
class FlagUser:
    """An application that evaluated a flag in an environment, and the time of its last evaluation."""

    application: str
    environment: str
    last_used_at: datetime


def read_users(flag_ids: Iterable[int]) -> dict[int, list[FlagUser]]:
    """The users of each flag that has any, most recent first. One query."""
    users: dict[int, list[FlagUser]] = {}
    for flag_id, *user in fetch_rows(_USERS, [list(flag_ids)]):
        users.setdefault(flag_id, []).append(FlagUser(*user))
    return users


def read_usage(flag: Flag) -> Document:
    """Counts for the last hour, and all applications that ever used the flag."""
    users = read_users([flag.pk]).get(flag.pk, [])
    return {
        "version": 1,
        "maturity": "stable",
        "featureName": flag.name,
        "lastHourUsage": [
            {"environment": environment, "timestamp": iso(hour), "yes": yes, "no": no}
            for environment, hour, yes, no in fetch_rows(
                _HOURS, [flag.pk, timezone.now() - timedelta(hours=1)]
            )
        ],
        "seenApplications": sorted({user.application for user in users}),
        "usage": make_user_documents(users),
    }


def make_user_documents(users: Sequence[FlagUser]) -> list[Document]:
    return [
        {"appName": user.application, "environment": user.environment, "lastSeenAt": iso(user.last_used_at)}
        for user in users
    ]


def read_raw_usage(flag: Flag, *, hours_back: int) -> Document:
    """Counts by application, environment and hour."""
    since = timezone.now() - timedelta(hours=hours_back)
    return {
        "version": 1,
        "maturity": "stable",
        "featureName": flag.name,
        "data": [
            {
                "featureName": flag.name,
                "appName": application,
                "environment": environment,
                "timestamp": iso(hour),
                "yes": yes,
                "no": no,
                "variants": orjson.loads(variants),
            }
            for application, environment, hour, yes, no, variants in fetch_rows(_RAW, [flag.pk, since])
        ],
    }


def describe_usage(flag: int, environment: str) -> dict[str, Any]:
    """The flag's usage for the confirmation before saving: ``users``, the names of the applications that evaluate it
    there, and ``last_evaluation`` if none is known.
    """
    users = read_users([flag]).get(flag, [])
    names = sorted({user.application for user in users if user.environment == environment})
    return {"users": names, "last_evaluation": None if names else find_last_evaluation([flag], environment)}
