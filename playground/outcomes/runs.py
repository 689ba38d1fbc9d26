"""Tables that are too large to answer at once, and incidents, are runs like those of users, beside the requests."""

import csv
import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from io import BytesIO, StringIO
from typing import IO, Any, cast

from django.db import transaction
from django.utils import timezone

from flagadmin.core.db.transactions import transactional
from groups.access import Caller
from playground.models import UserRun
from playground.outcomes.answer import CHUNK, MAX_CHANGES, Assignments, answer_table
from playground.outcomes.history import Sight, Window, read_histories, read_now
from playground.outcomes.incident import check_window, find_cause, read_users
from playground.outcomes.sql import check_query, open_query
from playground.outcomes.table import Limits, Table, TooLarge, is_packed
from playground.queries import count_active_flags
from playground.user_runs.evaluate import CHUNK_CELLS, GZIP, Chunk, finish_run, store_parts
from playground.user_runs.file import MAX_HELD_CELLS, read_own_users
from playground.user_runs.runs import AT_ONCE, begin_run, make_room

MAX_CHANGES_OF_RUN = 2_000
AT_ONCE_BYTES = 200_000
"""The largest table that a page answers at once."""
USERS_AT_ONCE, CHANGES_AT_ONCE, FLAGS_AT_ONCE = 2_000, 100, 500
MAX_USERS = 100_000
"""Affected users, and others, of an incident."""
MAX_UNPACKED = 2_000_000_000


@transactional
def create_assignments(
    body: bytes,
    *,
    caller: Caller,
    environment: str,
    flags: Sequence[str],
    lag: int,
    file_name: str = "",
    at_once: bool = False,
    query: str = "",
    replaces: bool = True,
) -> UserRun:
    """Stores a table and starts its run, or answers a small one ``at_once``, which raises ValidationError for it.

    Otherwise problems of the table become those of the run. ``query`` names one whose rows take the place of ``body``,
    and which is always made beside the requests. Raises NotFound and ValidationError for flags, Conflict if
    there is no room (`make_room`).
    """
    names = list(dict.fromkeys(flags))
    sight = Sight.of(caller, environment)
    if query:
        check_query(caller, query)
    make_room(caller, replaces=replaces)
    values = {
        "kind": UserRun.Kind.ASSIGNMENTS,
        "options": {"flags": names, "lag": lag, "withDeleted": sight.with_deleted, "query": query},
        "projects": sorted(sight.projects),
        "environment": environment,
        "flag": ", ".join(names),
        "file_name": (file_name or query)[:255],
        "created_at": timezone.now(),
        "body": body if is_packed(body) else gzip.compress(body, 1),
        "flags": len(names),
    }
    if at_once and not query and len(body) <= AT_ONCE_BYTES and not is_packed(body):
        limits = Limits(AT_ONCE // max(1, len(names)), CHUNK_CELLS, len(body))
        with suppress(TooLarge), transaction.atomic():
            write = partial(write_assignments, limits=limits, max_changes=MAX_CHANGES)
            return begin_run(caller, write, **values)
    return begin_run(caller, None, **values)


def write_assignments(run: UserRun, *, limits: Limits | None = None, max_changes: int | None = None) -> None:
    """Answers a run's table, a part at a time. Raises ValidationError naming rows, NotFound, TooLarge."""
    options = run.options
    histories = read_histories(
        Sight(frozenset(run.projects), options["withDeleted"]),
        run.environment,
        options["flags"],
        max_changes=max_changes or MAX_CHANGES_OF_RUN,
    )
    assignments = Assignments(histories, lag=options["lag"])
    query = options.get("query")
    stream = cast("IO[bytes]", open_query(query)) if query else BytesIO(run.body)
    table = Table(stream, until=read_now(), limits=limits or Limits(unpacked=MAX_UNPACKED))
    store_parts(run, _write(table, assignments))
    finish_run(run, rows=assignments.rows, counts=assignments.summarize()["flags"])


# Incidents ------------------------------------------------------------------------------------------------


def create_incident(
    affected: bytes,
    others: bytes | None,
    *,
    caller: Caller,
    environment: str,
    since: datetime,
    until: datetime,
    file_name: str = "",
) -> UserRun:
    """Asks which change the affected users noticed, at once if there are few users and changes.

    Without ``others``, the users of the caller's own last file stand in, else generated ones. Raises ValidationError,
    Conflict.
    """
    return _create_incident(
        affected, others, caller, environment, check_window(since, until, read_now()), file_name
    )


@transactional
def _create_incident(
    affected: bytes, others: bytes | None, caller: Caller, environment: str, window: Window, file_name: str
) -> UserRun:
    sight, are = Sight.of(caller, environment), "given"
    if others is None:
        others, are = read_own_users(caller), "own"
    make_room(caller)
    parts = [body if is_packed(body) else gzip.compress(body, 1) for body in (affected, others or b"")]
    values = {
        "kind": UserRun.Kind.INCIDENT,
        "options": {
            "from": window.since.isoformat(),
            "to": window.until.isoformat(),
            "affectedBytes": len(parts[0]),
            "othersAre": are if others else "generated",
        },
        "projects": sorted(sight.projects),
        "environment": environment,
        "file_name": file_name[:255],
        "created_at": timezone.now(),
        "body": b"".join(parts),
    }
    size = len(affected) + len(others or b"")
    is_small = size <= AT_ONCE_BYTES and not any(map(is_packed, (affected, others or b"")))
    if is_small and count_active_flags(sight.projects) <= FLAGS_AT_ONCE:
        with suppress(TooLarge), transaction.atomic():
            return begin_run(caller, write_small_incident, **values)
    return begin_run(caller, None, **values)


def write_small_incident(run: UserRun) -> None:
    write_incident(run, Limits(USERS_AT_ONCE, CHUNK_CELLS, AT_ONCE_BYTES), CHANGES_AT_ONCE)


def write_incident(
    run: UserRun,
    limits: Limits = Limits(MAX_USERS, MAX_HELD_CELLS, MAX_UNPACKED),  # noqa: B008
    max_changes: int = MAX_CHANGES_OF_RUN,
) -> None:
    """Raises ValidationError naming rows, TooLarge."""
    options, body = run.options, bytes(run.body)
    window = Window(*(datetime.fromisoformat(options[end]) for end in ("from", "to")))
    place, are = options["affectedBytes"], options["othersAre"]
    affected = read_users(body[:place], limits, window.until)
    others = None if are == "generated" else read_users(body[place:], limits, window.until, are)
    sight = Sight(frozenset(run.projects), with_deleted=False)
    found = find_cause(sight, run.environment, window, affected, others, max_changes=max_changes)
    data = write_incident_csv(found).encode()
    users = found["affected"] + found["others"]
    store_parts(run, [Chunk(users, gzip.compress(data, 1), len(data))])
    finish_run(run, rows=users, counts=found)


COLUMNS = (
    "at",
    "change",
    "flags",
    "affected",
    "of",
    "others",
    "of others",
    "odds ratio",
    "p",
    "p adjusted",
    "sentence",
)


def write_incident_csv(found: Mapping[str, Any]) -> str:
    """The changes in their order, then what the affected have in common, without ``at``."""
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for row in (*found["changes"], *found["common"]):
        flags = "; ".join(flag["name"] for flag in row["flags"]) if "flags" in row else row["flag"]
        noticed, known = row["noticed"], row["known"]
        numbers = (noticed["affected"], known["affected"], noticed["others"], known["others"])
        tests = (row["oddsRatio"], row["p"], row["pAdjusted"])
        writer.writerow(
            [row.get("at", ""), row.get("change") or "", flags, *numbers, *tests, row["sentence"]]
        )
    return text.getvalue()


def _write(table: Table, assignments: Assignments) -> Iterator[Chunk]:
    packer, done = zlib.compressobj(1, wbits=GZIP), 0
    for text in answer_table(table, assignments, CHUNK):
        data = text.encode()
        yield Chunk(assignments.rows - done, packer.compress(data), len(data))
        done = assignments.rows
    yield Chunk(0, packer.flush(), 0)
