"""Reads a flag's evaluations in each environment over a period, by application, with the changes in that time."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone

from flagadmin.core.audit.sentences import make_sentence
from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.lists.charts import Slice, Timeline, make_slices, make_timeline
from groups.access import Caller
from projects.applications.queries import find_project_applications, read_oldest_versions
from projects.applications.sdk_versions import group_sdks
from projects.flags.insights.evaluations import Evaluations, read_evaluations_by_day, read_evaluations_by_hour
from projects.flags.insights.usage import FlagUser, read_users
from projects.history.queries import TYPES, readable_events
from projects.models import Flag

MAX_MARKS = 40  # the last changes in an environment
MAX_PARTS = 12  # applications or variants; the others are added up
OTHERS = "others"
PERIODS = {"24h": ("24 hours", 24), "30d": ("30 days", 30), "90d": ("90 days", 90)}
"""The periods by their name in the URL: the label, and the number of hours or days."""
_APPLICATIONS = """
SELECT h.environment, coalesce(a.name, 'deleted application'), sum(h.yes + h.no)::bigint
  FROM projects_usagehour h LEFT JOIN projects_application a ON a.id = h.application_id
 WHERE h.flag_id = %s AND h.environment = ANY(%s) AND h.hour > %s GROUP BY 1, 2 ORDER BY 3 DESC, 2
"""


@dataclass(frozen=True, slots=True)
class Insight:
    """A flag in an environment. ``chart`` is None without evaluations.

    ``applications`` are always from the last 24 hours: older counts are not by application.
    """

    environment: str
    evaluations: Evaluations
    chart: Timeline | None
    variants: Sequence[Slice]
    applications: Sequence[Slice]


def read_insights(flag: Flag, environments: Sequence[str], period: str, *, caller: Caller) -> list[Insight]:
    """Reads each environment's insights, in three queries and one per environment. ``period``: a key of PERIODS."""
    now, (_, number) = timezone.now(), PERIODS[period]
    evaluations: Mapping[str, Evaluations]
    if period == "24h":
        evaluations, length = read_evaluations_by_hour(flag.pk, environments, now=now), timedelta(hours=1)
    else:
        evaluations = read_evaluations_by_day(flag.pk, environments, days=number, now=now)
        length = timedelta(days=1)
    applications = _count_applications(flag, environments, now)
    return [
        Insight(
            name,
            counted,
            _make_chart(flag, name, counted, length, caller=caller) if counted.total else None,
            make_slices(_keep_largest(counted.variants)),
            make_slices(_keep_largest(applications.get(name, {}))),
        )
        for name, counted in evaluations.items()
    ]


def _make_chart(
    flag: Flag, environment: str, evaluations: Evaluations, length: timedelta, *, caller: Caller
) -> Timeline:
    start, end = evaluations.counts[0].at, evaluations.counts[-1].at + length
    events = readable_events(caller).filter(project=flag.project_id, feature=flag.name, type__in=TYPES)
    in_period = events.filter(Q(environment=environment) | Q(environment=None), created_at__gte=start)
    changes = [(event.created_at, _describe_event(event)) for event in in_period.order_by("-pk")[:MAX_MARKS]]
    return make_timeline(evaluations.counts, end, changes)


def _describe_event(event: Any) -> str:
    return f"{event.created_at:%Y-%m-%d %H:%M} UTC, {event.actor_name}: {make_sentence(event)}"


def _count_applications(flag: Flag, environments: Sequence[str], now: datetime) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    values = [flag.pk, list(environments), now - timedelta(hours=24)]
    for environment, name, number in fetch_rows(_APPLICATIONS, values):
        counts.setdefault(environment, {})[name] = number
    return counts


def _keep_largest(numbers: Mapping[str, int]) -> dict[str, int]:
    """The MAX_PARTS largest, with which ``numbers`` begin."""
    first = dict(list(numbers.items())[:MAX_PARTS])
    rest = sum(numbers.values()) - sum(first.values())
    return first | ({OTHERS: rest} if rest else {})


@dataclass(frozen=True, slots=True)
class UsingApplication:
    """An application that evaluated the flag. ``outdated``: it uses the oldest version of an SDK."""

    name: str
    environments: Sequence[str]
    last_used_at: datetime
    instances: int
    sdks: Sequence[str]
    outdated: bool


def list_using_applications(flag: Flag) -> list[UsingApplication]:
    """The applications, most recent first."""
    by_name: dict[str, list[FlagUser]] = defaultdict(list)
    for user in read_users([flag.pk]).get(flag.pk, []):
        by_name[user.application].append(user)
    if not by_name:
        return []
    lines = {
        line.name: line for line in find_project_applications(flag.project_id).filter(name__in=list(by_name))
    }
    oldest = read_oldest_versions(flag.project_id)
    applications = []
    for name, users in by_name.items():
        line = lines.get(name)
        sdks = group_sdks(line.sdks) if line else []
        applications.append(
            UsingApplication(
                name=name,
                environments=[user.environment for user in users],
                last_used_at=users[0].last_used_at,
                instances=line.instance_count if line else 0,
                sdks=[_describe_sdk(sdk["name"], sdk["versions"], oldest) for sdk in sdks],
                outdated=any(oldest.get(sdk["name"]) in sdk["versions"] for sdk in sdks),
            )
        )
    return applications


def _describe_sdk(sdk: str, versions: Sequence[str], oldest: Mapping[str, str]) -> str:
    """``unleash-node-sdk 6.11.0 (outdated), 6.12.1``"""
    named = [f"{version} (outdated)" if oldest.get(sdk) == version else version for version in versions]
    return f"{sdk} {', '.join(named)}".strip()
