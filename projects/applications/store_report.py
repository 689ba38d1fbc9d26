"""Stores usage reports.

A stored time is updated only if it is more than a minute old, so reports of unchanged clients mostly need
reads. Tables are written in the order given in ``projects.applications.usage_triggers``, each in key order,
which prevents deadlocks.

Many users know SDK tokens, so the number of new names is limited: per application and hour, and in total. Names
beyond a limit are counted as ignored.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import astuple, replace
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.conf import settings
from django.db import connection
from django.utils import timezone

from flagadmin.core.db.statements import execute
from flagadmin.core.db.transactions import transactional
from projects.applications.impact_metrics import write_samples
from projects.applications.sdk_versions import (
    IMPACT,
    UNKNOWN_FLAG,
    VARIANT,
    Subject,
    limit_report,
    quota,
    write_ignored,
)
from projects.applications.usage_report import (
    STEP,
    STRATEGIES_KEPT,
    FlagUse,
    StoredUsage,
    UsageReport,
    Writes,
    fetch,
    make_columns,
    plan_writes,
    read_stored_usage,
)


class FlagsLocked(Exception):
    """Another transaction has locked these flags; nothing was written."""

    def __init__(self, flags: set[str]) -> None:
        super().__init__(", ".join(sorted(flags)))
        self.flags = flags


@transactional
def store_report(
    report: UsageReport,
    *,
    now: datetime | None = None,
    lock_wait: timedelta | None = None,
    skip_locked: bool = False,
) -> None:
    """Writes the new parts of a report. Unknown flags are stored by name only.

    Waiting for a lock longer than ``lock_wait`` raises OperationalError with LOCK_NOT_AVAILABLE. With
    ``skip_locked``, raises FlagsLocked at once for flags that another transaction has locked.
    """
    now = now or timezone.now()
    with connection.cursor() as cursor:
        known = read_stored_usage(cursor, report)
        within = limit_report(report, known, now=now)
        report, ignored = within.report, within.ignored
        writes = plan_writes(report, known, now=now)
        if lock_wait is not None and (writes or report.hours or report.impact):
            wait = f"{lock_wait.total_seconds() * 1000:.0f}ms"
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [wait])
        _hold_flags(cursor, known, writes, skip_locked=skip_locked)
        ignored += apply_writes(cursor, report, known, writes, now=now)
        ignored[Subject(IMPACT)] += write_samples(cursor, report.impact, now=now)
        for (kind, token), number in report.invalid.items():
            ignored[Subject(kind, token=token)] += number
        write_ignored(cursor, ignored, now=now)


# Writes, in the order of locks --------------------------------------------------------------------------


def apply_writes(
    cursor: Any, report: UsageReport, known: StoredUsage, writes: Writes, *, now: datetime
) -> Counter[Subject]:
    """Returns the numbers of variants and unknown flags beyond the limits, which were not written."""
    _write_flags_seen(cursor, writes)
    known.applications |= _make_applications(cursor, writes, now)
    _hold_applications(cursor, known, writes)
    _write_strategies(cursor, known, writes)
    _write_instances(cursor, known, writes, now)
    _write_usage(cursor, known, writes)
    ignored = _write_hours(cursor, report, known)
    _write_lines(cursor, known, writes, now)
    return ignored + write_unknown_flags(cursor, report, known, now=now)


def _hold_flags(cursor: Any, known: StoredUsage, writes: Writes, *, skip_locked: bool) -> None:
    """Locks flags, because a concurrent move or deletion of a flag would miss the usage written here.

    Flags deleted in the meantime are treated as unknown.
    """
    if not writes.flags_to_hold:
        return
    statement = 'SELECT name FROM projects_flag WHERE name = ANY(%s) ORDER BY name COLLATE "C" FOR SHARE'
    statement += " SKIP LOCKED" if skip_locked else ""
    locked = _read_names(cursor, statement, writes.flags_to_hold)
    unlocked = writes.flags_to_hold - locked
    if unlocked and skip_locked:
        busy = _read_names(cursor, "SELECT name FROM projects_flag WHERE name = ANY(%s)", unlocked)
        if busy:
            raise FlagsLocked(busy)
    removed = {known.flags.pop(name) for name in unlocked}
    if removed:
        writes.used = {use: at for use, at in writes.used.items() if use.flag in known.flags}
        writes.flags_seen = {key: at for key, at in writes.flags_seen.items() if key[0] not in removed}


def _read_names(cursor: Any, statement: str, names: set[str]) -> set[str]:
    return {name for (name,) in fetch(cursor, statement, sorted(names))}


def _write_flags_seen(cursor: Any, writes: Writes) -> None:
    rows = [(*key, at) for key, at in sorted(writes.flags_seen.items())]
    statement = """
        INSERT INTO projects_flaglastseen AS known (flag_id, environment, seen_at)
        SELECT reported.* FROM unnest(%s::bigint[], %s::text[], %s::timestamptz[])
               AS reported (flag_id, environment, seen_at) JOIN projects_flag f ON f.id = reported.flag_id
         ORDER BY reported.flag_id, reported.environment
        ON CONFLICT (flag_id, environment) DO UPDATE SET seen_at = excluded.seen_at
         WHERE excluded.seen_at - known.seen_at >= %s
    """
    if rows:
        cursor.execute(statement, [*make_columns(rows, 3), STEP])


def _make_applications(cursor: Any, writes: Writes, now: datetime) -> dict[str, int]:
    """Creates applications and returns their ids.

    If a concurrent transaction has created one of them, the upsert locks it and changes nothing.
    """
    names = sorted(writes.new_applications)
    statement = """
        INSERT INTO projects_application AS known (name, folded_name, strategies, created_at)
        SELECT reported.*, '{}', %s FROM unnest(%s::text[], %s::text[]) AS reported (name, folded_name)
        ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING name, id
    """
    return dict(fetch(cursor, statement, now, names, [n.casefold() for n in names])) if names else {}


def _hold_applications(cursor: Any, known: StoredUsage, writes: Writes) -> None:
    ids = sorted({known.applications[name] for name in writes.changed | set(writes.strategies)})
    if ids:
        statement = "SELECT 1 FROM projects_application WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"
        cursor.execute(statement, [ids])


def _write_strategies(cursor: Any, known: StoredUsage, writes: Writes) -> None:
    statement = """
        UPDATE projects_application SET strategies =
               (ARRAY(SELECT DISTINCT unnest(strategies || %s::text[]) ORDER BY 1))[:%s] WHERE id = %s
    """
    for name, reported in sorted(writes.strategies.items()):
        cursor.execute(statement, [sorted(reported), STRATEGIES_KEPT, known.applications[name]])


def _write_instances(cursor: Any, known: StoredUsage, writes: Writes, now: datetime) -> None:
    rows = sorted(
        (known.applications[key.application], key.instance_id, key.environment,
         instance.sdk_version.casefold(), *astuple(replace(instance, sdk_type=instance.sdk_type or "backend")))
        for key, instance in writes.instances.items()
    )  # fmt: skip
    statement = """
        INSERT INTO projects_applicationinstance AS known (
            application_id, instance_id, environment, folded_sdk, sdk_version, sdk_type,
            platform_name, platform_version, spec_version, engine_version, sdk_flavor, first_seen_at, seen_at)
        SELECT reported.*, moment, moment FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[],
               %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[]) AS reported,
               (SELECT %s::timestamptz) AS now (moment)
        ON CONFLICT (application_id, instance_id, environment) DO UPDATE SET
            folded_sdk = coalesce(nullif(excluded.folded_sdk, ''), known.folded_sdk),
            sdk_version = coalesce(nullif(excluded.sdk_version, ''), known.sdk_version),
            sdk_type = coalesce(nullif(excluded.sdk_type, ''), known.sdk_type),
            platform_name = coalesce(nullif(excluded.platform_name, ''), known.platform_name),
            platform_version = coalesce(nullif(excluded.platform_version, ''), known.platform_version),
            spec_version = coalesce(nullif(excluded.spec_version, ''), known.spec_version),
            engine_version = coalesce(nullif(excluded.engine_version, ''), known.engine_version),
            sdk_flavor = coalesce(nullif(excluded.sdk_flavor, ''), known.sdk_flavor),
            seen_at = greatest(known.seen_at, excluded.seen_at)
    """
    if rows:
        cursor.execute(statement, [*make_columns(rows, 11), now])


def _write_usage(cursor: Any, known: StoredUsage, writes: Writes) -> None:
    rows = sorted(
        (known.applications[use.application], known.flags[use.flag], use.environment, at)
        for use, at in writes.used.items()
    )
    statement = """
        INSERT INTO projects_flagusage AS known (application_id, flag_id, environment, last_used_at)
        SELECT reported.* FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::timestamptz[])
               AS reported (application_id, flag_id, environment, at) JOIN projects_flag f ON f.id = reported.flag_id
         ORDER BY reported.application_id, reported.flag_id, reported.environment
        ON CONFLICT (application_id, flag_id, environment) DO UPDATE SET last_used_at = excluded.last_used_at
         WHERE excluded.last_used_at > known.last_used_at
    """
    if rows:
        cursor.execute(statement, make_columns(rows, 4))


def _write_hours(cursor: Any, report: UsageReport, known: StoredUsage) -> Counter[Subject]:
    """Adds hourly counts. A row has a limited number of variant names, the first ones reported."""
    limit = settings.REPORT_VARIANTS_LIMIT
    reported = {
        (known.flags[use.flag], use.environment, hour, known.applications[use.application]): (use, count)
        for (use, hour), count in report.hours.items()
        if use.flag in known.flags
    }
    rows = [
        (*key, count.yes, count.no, orjson.dumps(dict(sorted(count.variants.items())[:limit])).decode())
        for key, (_, count) in sorted(reported.items())
    ]
    statement = """
        INSERT INTO projects_usagehour AS known (flag_id, environment, hour, application_id, yes, no, variants)
        SELECT * FROM unnest(%s::bigint[], %s::text[], %s::timestamptz[], %s::bigint[],
                             %s::bigint[], %s::bigint[], %s::jsonb[])
        ON CONFLICT (flag_id, environment, hour, application_id) DO UPDATE SET
            yes = known.yes + excluded.yes, no = known.no + excluded.no,
            variants = CASE WHEN excluded.variants = '{}' THEN known.variants ELSE (
                SELECT jsonb_object_agg(name, total) FROM (
                    SELECT key AS name, sum(value::bigint) AS total
                      FROM (SELECT * FROM jsonb_each_text(known.variants)
                            UNION ALL SELECT * FROM jsonb_each_text(excluded.variants)) AS counts
                     GROUP BY key ORDER BY NOT known.variants ? key, key LIMIT %s) AS summed) END
        RETURNING flag_id, environment, hour, application_id,
                  CASE WHEN (SELECT count(*) FROM jsonb_object_keys(variants)) >= %s THEN variants END
    """
    ignored: Counter[Subject] = Counter()
    for *key, full in fetch(cursor, statement, *make_columns(rows, 7), limit, limit) if rows else ():
        use, count = reported[tuple(key)]
        if full is not None and (beyond := count.variants.keys() - orjson.loads(full).keys()):
            ignored[Subject(VARIANT, application=use.application)] += len(beyond)
    return ignored


def _write_lines(cursor: Any, known: StoredUsage, writes: Writes, now: datetime) -> None:
    """Rebuilds changed applications in the applications lists, and updates "last seen" of the others."""
    changed = sorted({known.applications[name] for name in writes.changed})
    if changed:
        refresh_applications(changed, now=now)
    places = {(p.application, p.environment): now for p in writes.instances}
    places |= {(u.application, u.environment): max(at, places.get((u.application, u.environment), at))
               for u, at in writes.used.items()}  # fmt: skip
    rows = sorted(
        (known.applications[name], environment, at)
        for (name, environment), at in places.items()
        if name not in writes.changed
    )
    statement = """
        WITH due AS (
            SELECT line.project_id, line.application_id, reported.at
              FROM unnest(%s::bigint[], %s::text[], %s::timestamptz[]) AS reported (application_id, environment, at)
              JOIN projects_projectapplication line
                ON line.application_id = reported.application_id AND reported.environment = ANY(line.environments)
             WHERE reported.at - line.last_seen_at >= %s
             ORDER BY line.application_id, line.project_id FOR NO KEY UPDATE OF line
        )
        UPDATE projects_projectapplication line SET last_seen_at = greatest(line.last_seen_at, due.at)
          FROM due WHERE line.project_id = due.project_id AND line.application_id = due.application_id
    """
    if rows:
        cursor.execute(statement, [*make_columns(rows, 3), STEP])


def refresh_applications(ids: list[int], *, now: datetime | None = None) -> None:
    """Rebuilds the rows of these applications in every project's list."""
    since = (now or timezone.now()) - settings.APPLICATION_INSTANCE_WINDOW
    execute("SELECT projects_refresh_applications(%s, %s)", [ids, since])


MAX_UNKNOWN_FLAGS = 10_000  # rows
MAX_NEW_IN_AN_HOUR = 100  # for each application and worker
MAX_AT_ONCE = 500  # of an application in a report, the first by name; others are not looked up
MAX_NAME_LENGTH = 100  # of a flag

Uses = Mapping[FlagUse, datetime]


def write_unknown_flags(
    cursor: Any, report: UsageReport, known: StoredUsage, *, now: datetime
) -> Counter[Subject]:
    """Stores when each application last reported each unknown flag. Returns the numbers of those beyond a limit.

    A stored time is updated only if it is more than a minute old. Reports without unknown flags need no
    statement, others up to three.
    """
    uses = {
        use: at
        for use, at in report.used.items()
        if use.flag not in known.flags and len(use.flag) <= MAX_NAME_LENGTH
    }
    if not uses:
        return Counter()
    cut = _find_beyond_report(uses)
    uses = {use: at for use, at in uses.items() if use not in cut}
    stored = _read_stored(cursor, uses, known)
    beyond = _find_beyond_limits(cursor, uses.keys() - stored.keys(), now)
    due = {
        use: at
        for use, at in uses.items()
        if use not in beyond and (use not in stored or at - stored[use] >= STEP)
    }
    _upsert(cursor, due, known)
    return Counter(Subject(UNKNOWN_FLAG, application=use.application) for use in (*cut, *beyond))


def _find_beyond_report(uses: Uses) -> set[FlagUse]:
    """The uses beyond the limit of one report. A report can name 10,000 flags, and anyone can send one."""
    by_application: dict[str, list[FlagUse]] = {}
    for use in uses:
        by_application.setdefault(use.application, []).append(use)
    return {use for own in by_application.values() for use in sorted(own)[MAX_AT_ONCE:]}


def _read_stored(cursor: Any, uses: Uses, known: StoredUsage) -> dict[FlagUse, datetime]:
    statement = """
        SELECT reported.application, u.name, u.environment, u.seen_at
          FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::text[])
               AS reported (application, application_id, name, environment)
          JOIN projects_unknownflag u USING (application_id, name, environment)
    """
    applications, names, environments = make_columns(uses, 3)
    ids = [known.applications[name] for name in applications]
    rows = fetch(cursor, statement, applications, ids, names, environments)
    return {FlagUse(*use): seen_at for *use, seen_at in rows}


def _find_beyond_limits(cursor: Any, new: Collection[FlagUse], now: datetime) -> set[FlagUse]:
    if not new:
        return set()
    [(number,)] = fetch(cursor, "SELECT count(*) FROM projects_unknownflag")
    room = max(0, MAX_UNKNOWN_FLAGS - number)
    allowed: set[FlagUse] = set()
    for application in sorted({use.application for use in new}):
        own = [use for use in new if use.application == application]
        limit = min(MAX_NEW_IN_AN_HOUR, room - len(allowed))
        allowed |= quota.take(Subject(UNKNOWN_FLAG, application=application), own, limit, now=now)
    return set(new) - allowed


def _upsert(cursor: Any, uses: Uses, known: StoredUsage) -> None:
    rows = sorted(
        (known.applications[use.application], use.environment, use.flag, at) for use, at in uses.items()
    )
    statement = """
        INSERT INTO projects_unknownflag AS known (application_id, environment, name, seen_at)
        SELECT reported.* FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::timestamptz[])
               AS reported (application_id, environment, name, seen_at)
          JOIN projects_application a ON a.id = reported.application_id
         ORDER BY reported.application_id, reported.environment, reported.name
        ON CONFLICT (application_id, environment, name) DO UPDATE SET seen_at = excluded.seen_at
         WHERE excluded.seen_at > known.seen_at
    """
    if rows:
        cursor.execute(statement, make_columns(rows, 4))
