"""The ETag of a bulk evaluation: a digest of what the answer is made from, so that no flag is evaluated for it."""

import hashlib
from collections.abc import Mapping
from datetime import datetime

import orjson

from playground.engine.context import Context
from playground.engine.snapshot import Snapshot

FORMAT = 1  # of the answer; another makes all ETags new


def etag_of(
    snapshot: Snapshot, revisions: Mapping[str, int], context: Context, now: datetime, *, browser: bool
) -> str:
    """A strong ETag. It changes with a project's revision, with the context, and when a date is reached that a
    condition compares with the current time."""
    values = snapshot.columns.values_on_demand(context.at(now))
    clock = [constraint.test(values[constraint.column]) for constraint in snapshot.clock]
    made_from = (FORMAT, browser, sorted(revisions.items()), sorted(context.values.items()), clock)
    return f'"{hashlib.blake2b(orjson.dumps(made_from), digest_size=16).hexdigest()}"'
