"""Usage reports of SDKs as plain data, and the plan for writing one, given the stored rows.

Reports can be added together.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings

from projects.applications.impact_metrics import Samples

HOURS_KEPT = timedelta(hours=48)
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)  # earlier times in reports are invalid


class InstanceKey(NamedTuple):
    """An instance of an application in an environment, in the order of the table's key."""

    application: str
    instance_id: str
    environment: str


class FlagUse(NamedTuple):
    """The use of a flag by an application in an environment."""

    application: str
    flag: str
    environment: str


@dataclass(slots=True)
class Instance:
    """An SDK's report about itself; "" for missing values."""

    sdk_version: str = ""
    sdk_type: str = ""
    platform_name: str = ""
    platform_version: str = ""
    spec_version: str = ""
    engine_version: str = ""
    sdk_flavor: str = ""

    def completed_by(self, known: "Instance") -> "Instance":
        """This instance, completed with earlier values."""
        return Instance(*(getattr(self, f.name) or getattr(known, f.name) for f in fields(self)))


@dataclass(slots=True)
class Count:
    yes: int = 0
    no: int = 0
    variants: dict[str, int] = field(default_factory=dict)

    def add(self, other: "Count") -> None:
        self.yes += other.yes
        self.no += other.no
        for name, number in other.variants.items():
            self.variants[name] = self.variants.get(name, 0) + number


@dataclass(slots=True)
class UsageReport:
    """A report. ``used`` has the latest time of each use, ``hours`` the counts of each use by hour (UTC).

    ``strategies`` has every application in the report with its known strategies; ``tokens`` the id of the
    token that reported each application. ``impact`` are impact metrics; ``invalid`` counts invalid items by
    kind (as in ``report_limits``) and token.
    """

    instances: dict[InstanceKey, Instance] = field(default_factory=dict)
    strategies: dict[str, set[str]] = field(default_factory=dict)
    used: dict[FlagUse, datetime] = field(default_factory=dict)
    hours: dict[tuple[FlagUse, datetime], Count] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    impact: Samples = field(default_factory=dict)
    invalid: Counter[tuple[str, int]] = field(default_factory=Counter)

    def with_token(self, token: int) -> "UsageReport":
        self.tokens = dict.fromkeys(self.strategies, token)
        self.invalid = Counter({(kind, token): number for (kind, _), number in self.invalid.items()})
        return self

    def add_instance(self, key: InstanceKey, instance: Instance, strategies: Iterable[str] = ()) -> None:
        known = self.instances.get(key)
        self.instances[key] = instance.completed_by(known) if known else instance
        self.strategies.setdefault(key.application, set()).update(strategies)

    def add_count(self, use: FlagUse, at: datetime, count: Count, *, now: datetime) -> None:
        """Ignores zero counts. Limits the time to between EARLIEST and now."""
        if not count.yes and not count.no:
            return
        at = max(EARLIEST, min(at, now))
        self._note_use(use, at)
        if now - at < HOURS_KEPT:
            hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
            self.hours.setdefault((use, hour), Count()).add(count)

    def add(self, other: "UsageReport") -> None:
        for key, instance in other.instances.items():
            self.add_instance(key, instance)
        for application, names in other.strategies.items():
            self.strategies.setdefault(application, set()).update(names)
        for use, at in other.used.items():
            self._note_use(use, at)
        for hour, count in other.hours.items():
            self.hours.setdefault(hour, Count()).add(count)
        self.tokens = other.tokens | self.tokens
        for series, sample in other.impact.items():
            self.impact[series] = self.impact[series].add(sample) if series in self.impact else sample
        self.invalid += other.invalid

    def _note_use(self, use: FlagUse, at: datetime) -> None:
        self.strategies.setdefault(use.application, set())
        self.used[use] = max(at, self.used.get(use, at))


STEP = timedelta(minutes=1)  # the precision of "last seen" times
STRATEGIES_KEPT = 100  # per application

Rows = list[tuple[Any, ...]]


@dataclass(slots=True)
class StoredUsage:
    """The stored rows for everything in a report."""

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
