"""Tells which of the dates that conditions compare with the current time have been reached."""

from playground.engine.context import Context
from playground.engine.snapshot import Snapshot


def find_dates_reached(snapshot: Snapshot, context: Context) -> list[tuple[str, bool]]:
    """The results of all conditions that compare the current time, which the context has: they change while the flags
    stay as they are.

    The same for the same flags in every worker, however it came by its snapshot.
    """
    if not snapshot.clock:
        return []
    values = snapshot.columns.values_on_demand(context)
    return sorted(
        {(constraint.unmet, constraint.test(values[constraint.column])) for constraint in snapshot.clock}
    )
