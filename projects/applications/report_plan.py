"""Compares a report with the stored usage and plans what to write."""

from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from projects.applications.usage_report import FlagUse, Instance, InstanceKey, UsageReport

STEP = timedelta(minutes=1)  # the precision of "last seen" times
STRATEGIES_KEPT = 100  # per application

Rows = list[tuple[Any, ...]]


@dataclass(slots=True)
class StoredUsage:
    """The stored rows of everything that a report names."""

    applications: dict[str, int] = field(default_factory=dict)
    strategies: dict[str, set[str]] = field(default_factory=dict)
    flags: dict[str, int] = field(default_factory=dict)
    flags_seen: dict[tuple[int, str], datetime] = field(default_factory=dict)
    instances: dict[InstanceKey, tuple[Instance, datetime]] = field(default_factory=dict)
    used: dict[FlagUse, datetime] = field(default_factory=dict)


@dataclass(slots=True)
class Writes:
    """The rows to write for a report.

    ``changed`` are the applications whose rows in the applications lists change.
    """

    flags_to_hold: set[str] = field(default_factory=set)
    flags_seen: dict[tuple[int, str], datetime] = field(default_factory=dict)
    new_applications: set[str] = field(default_factory=set)
    strategies: dict[str, set[str]] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    instances: dict[InstanceKey, Instance] = field(default_factory=dict)
    used: dict[FlagUse, datetime] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(getattr(self, each.name) for each in fields(self))


# Reads --------------------------------------------------------------------------------------------------


def read_stored_usage(cursor: Any, report: UsageReport) -> StoredUsage:
    """Reads the stored rows of a report in at most four SQL statements."""
    known = StoredUsage()
    statement = "SELECT name, id, strategies FROM projects_application WHERE name = ANY(%s)"
    for name, application, strategies in fetch(cursor, statement, sorted(report.strategies)):
        known.applications[name] = application
        known.strategies[name] = set(strategies)
    _read_flags(cursor, report, known)
    _read_instances(cursor, report, known)
    _read_usage(cursor, report, known)
    return known


def fetch(cursor: Any, statement: str, *parameters: Any) -> Rows:
    cursor.execute(statement, parameters)
    return cursor.fetchall()


def _read_flags(cursor: Any, report: UsageReport, known: StoredUsage) -> None:
    names = sorted({use.flag for use in report.used})
    if not names:
        return
    statement = """
        SELECT f.name, f.id, l.environment, l.seen_at FROM projects_flag f
          LEFT JOIN projects_flaglastseen l ON l.flag_id = f.id WHERE f.name = ANY(%s)
    """
    for name, flag, environment, seen_at in fetch(cursor, statement, names):
        known.flags[name] = flag
        if seen_at is not None:
            known.flags_seen[flag, environment] = seen_at


def _read_instances(cursor: Any, report: UsageReport, known: StoredUsage) -> None:
    places = [key for key in report.instances if key.application in known.applications]
    if not places:
        return
    statement = """
        SELECT reported.name, reported.instance_id, reported.environment, i.seen_at, i.sdk_version, i.sdk_type,
               i.platform_name, i.platform_version, i.spec_version, i.engine_version, i.sdk_flavor
          FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::text[])
               AS reported (name, application_id, instance_id, environment)
          JOIN projects_applicationinstance i USING (application_id, instance_id, environment)
    """
    names, instance_ids, environments = make_columns(places, 3)
    applications = [known.applications[name] for name in names]
    for row in fetch(cursor, statement, names, applications, instance_ids, environments):
        known.instances[InstanceKey(*row[:3])] = (Instance(*row[4:]), row[3])


def _read_usage(cursor: Any, report: UsageReport, known: StoredUsage) -> None:
    uses = [use for use in report.used if use.application in known.applications and use.flag in known.flags]
    if not uses:
        return
    statement = """
        SELECT reported.name, reported.flag, reported.environment, u.last_used_at
          FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::bigint[], %s::text[])
               AS reported (name, application_id, flag, flag_id, environment)
          JOIN projects_flagusage u USING (application_id, flag_id, environment)
    """
    names, flags, environments = make_columns(uses, 3)
    applications = [known.applications[name] for name in names]
    flag_ids = [known.flags[name] for name in flags]
    for *use, at in fetch(cursor, statement, names, applications, flags, flag_ids, environments):
        known.used[FlagUse(*use)] = at


def make_columns(rows: Any, width: int) -> tuple[list[Any], ...]:
    return tuple(list(column) for column in zip(*rows, strict=True)) or ([],) * width


# Plan ---------------------------------------------------------------------------------------------------


def plan_writes(report: UsageReport, known: StoredUsage, *, now: datetime) -> Writes:
    """Plans writes for rows that are new, have changed, or were last seen more than a minute ago."""
    writes = Writes(new_applications=set(report.strategies) - set(known.applications))
    for name, reported in report.strategies.items():
        stored = known.strategies.get(name, set())
        if not reported <= stored and len(stored) < STRATEGIES_KEPT:
            writes.strategies[name] = reported
    for key, instance in report.instances.items():
        _plan_instance(writes, key, instance, known.instances.get(key), now)
    for use, at in report.used.items():
        if use.flag in known.flags:
            _plan_use(writes, use, at, known)
    return writes


def _plan_instance(
    writes: Writes,
    key: InstanceKey,
    reported: Instance,
    known: tuple[Instance, datetime] | None,
    now: datetime,
) -> None:
    stored, seen_at = known or (Instance(), None)
    merged = reported.completed_by(stored)
    if seen_at is not None and merged == stored and now - seen_at < STEP:
        return
    writes.instances[key] = merged
    was_counted = seen_at is not None and now - seen_at < settings.APPLICATION_INSTANCE_WINDOW
    if not was_counted or merged.sdk_version != stored.sdk_version:
        writes.changed.add(key.application)


def _plan_use(writes: Writes, use: FlagUse, at: datetime, known: StoredUsage) -> None:
    key = (known.flags[use.flag], use.environment)
    flag_seen_at = known.flags_seen.get(key)
    if flag_seen_at is None or at - flag_seen_at >= STEP:
        writes.flags_seen[key] = max(at, writes.flags_seen.get(key, at))
    used_at = known.used.get(use)
    if used_at is None or at - used_at >= STEP:
        writes.used[use] = at
    if used_at is None:
        writes.changed.add(use.application)
    if used_at is None or flag_seen_at is None:
        writes.flags_to_hold.add(use.flag)
