"""Stores the names of flags that SDKs report though they do not exist: typing errors, and flags deleted too early.

Many users know SDK tokens, so what is stored is limited: for each application by new names in an hour, and in
total. Names beyond a limit are counted as ignored.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from projects.applications.report_limits import UNKNOWN_FLAG, Subject, quota
from projects.applications.report_plan import STEP, StoredUsage, fetch, make_columns
from projects.applications.usage_report import FlagUse, UsageReport

MAX_UNKNOWN_FLAGS = 10_000  # rows
MAX_NEW_IN_AN_HOUR = 100  # for each application and worker
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
    stored = _read_stored(cursor, uses, known)
    beyond = _find_beyond_limits(cursor, uses.keys() - stored.keys(), now)
    due = {
        use: at
        for use, at in uses.items()
        if use not in beyond and (use not in stored or at - stored[use] >= STEP)
    }
    _upsert(cursor, due, known)
    return Counter(Subject(UNKNOWN_FLAG, application=use.application) for use in beyond)


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
