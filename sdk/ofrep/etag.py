"""The ETag of a bulk evaluation: a digest of what the answer is made from, so that no flag is evaluated for it."""

import hashlib
from collections.abc import Mapping
from datetime import datetime

import orjson

from playground.engine.context import Context
from playground.engine.snapshot import Snapshot

FORMAT = 2  # of the answer; another makes all ETags new


def make_etag(
    snapshot: Snapshot, revisions: Mapping[str, int], context: Context, now: datetime, *, ticket: str
) -> str:
    """A strong ETag. It changes with a project's revision, the context, the ticket, and with ``find_dates_reached``."""
    reached = find_dates_reached(snapshot, context, now)
    made_from = (FORMAT, ticket, sorted(revisions.items()), sorted(context.values.items()), reached)
    return f'"{hashlib.blake2b(orjson.dumps(made_from), digest_size=16).hexdigest()}"'


def find_dates_reached(snapshot: Snapshot, context: Context, now: datetime) -> list[tuple[str, bool]]:
    """The results of all conditions that compare the current time: they change while the flags stay as they are.

    The same for the same flags in every worker, however it came by its snapshot.
    """
    values = snapshot.columns.values_on_demand(context.at(now))
    return sorted(
        {(constraint.unmet, constraint.test(values[constraint.column])) for constraint in snapshot.clock}
    )
