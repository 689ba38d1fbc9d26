"""Measures who gets something else once a change request is applied."""

from collections.abc import Sequence
from datetime import datetime

from flagadmin.core.db.transactions import transactional
from groups.access import Caller
from playground.comparison.impact import MAX_EDITS, Impact, measure_states
from projects.definitions import Definitions, read_definitions
from projects.models import Dependency, Strategy
from releases.changes import KINDS
from releases.models import ChangeRequest
from releases.requests.actions import try_changes


def measure_request(request: ChangeRequest, *, now: datetime, caller: Caller) -> tuple[list[Impact], int]:
    """What changes for the first flags of the request, and how many more it has.

    The changes are made and rolled back, so that what is measured is what applying does. Raises ValidationError if
    they cannot be made.
    """
    flags = _flags_of(request)
    measured = flags[:MAX_EDITS]
    before, after = _read_states(request, _with_near(measured))
    names = [name for name in measured if any(flag["name"] == name for flag in (*before.flags, *after.flags))]
    return measure_states(request.environment_id, names, (before, after), now=now, caller=caller), len(
        flags
    ) - len(measured)


@transactional
def _read_states(request: ChangeRequest, names: Sequence[str]) -> tuple[Definitions, Definitions]:
    def read() -> Definitions:
        return read_definitions([request.project_id], request.environment_id, flags=names)

    return read(), try_changes(request, read)


def _flags_of(request: ChangeRequest) -> list[str]:
    """The flags that it changes, and those of the project that use a segment it changes, by name."""
    changes = list(request.changes.all())
    segments = [change.payload["id"] for change in changes if KINDS[change.action].of_segment]
    using = Strategy.objects.filter(
        segments__in=segments, environment=request.environment_id, flag__project=request.project_id
    )
    named = {change.feature for change in changes if change.feature}
    return sorted(named.union(using.values_list("flag__name", flat=True)))


def _with_near(names: Sequence[str]) -> list[str]:
    """With their parents and children."""
    links = Dependency.objects.filter(flag__name__in=names) | Dependency.objects.filter(
        parent__name__in=names
    )
    near = {name for pair in links.values_list("flag__name", "parent__name") for name in pair}
    return sorted(near.union(names))
