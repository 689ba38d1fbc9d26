"""Compares generated users' results before and after each version of a flag, with everything else as of then."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.document import Document
from playground.comparison.compare import CHANGES, Change
from playground.comparison.impact import BUDGET, MAX_VALUES, count_values
from playground.comparison.states import compile_definitions
from playground.comparison.unmeasured import find_unmeasured
from playground.comparison.who_changes import WhoChanges, generate_users
from projects.definitions import Definitions
from projects.history.definitions_at import just_before, read_since
from projects.history.queries import TYPES
from projects.history.timeline import read_timeline
from projects.models import Environment, Flag, UsersChanged
from projects.states import NOTHING, FlagState, by_environment

USERS = 10_000
"""Generated users."""
RECENT = timedelta(days=7)
MAX_COUNTED = 100
"""Changes counted in one turn."""
MAX_PLACES = 4
"""Environments in which a version is compared."""


class Version(NamedTuple):
    """A change of a flag, between the moment ``before`` and that of its last event."""

    before: datetime
    at: datetime

    @classmethod
    def of_events(cls, times: Collection[datetime]) -> "Version":
        """``times`` are those of the change's events."""
        return cls(just_before(min(times)), max(times))


@dataclass(frozen=True, slots=True)
class ChangedPlace:
    """The number of users whose result changed in an environment; None if conditions have too many values to count.

    ``unmeasured``: sentences about conditions that generated users cannot measure. ``users`` are all that were
    generated.
    """

    environment: str
    counts: Mapping[Change, int] | None
    unmeasured: tuple[str, ...] = ()
    users: int = USERS

    @property
    def changed(self) -> int:
        return sum((self.counts or {}).get(change, 0) for change in CHANGES)

    @property
    def document(self) -> Document:
        return {
            "environment": self.environment,
            "users": self.users,
            "changed": None if self.counts is None else self.changed,
            "unmeasured": list(self.unmeasured),
            "changes": {change.value: number for change, number in (self.counts or {}).items()},
        }

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> "ChangedPlace":
        found = document["changes"]
        counts = {change: found[change.value] for change in Change if change.value in found}
        return cls(
            document["environment"],
            None if document["changed"] is None else counts,
            tuple(document["unmeasured"]),
            document["users"],
        )


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """The environments in which the version may have changed a result; ``more`` are not compared."""

    places: tuple[ChangedPlace, ...]
    more: int


def find_version_changes(flag: Flag, versions: Collection[Version]) -> dict[Version, VersionChanges]:
    """Finds how many generated users these versions changed. Five queries, one if all are stored.

    Versions with an unknown state are missing. Stores new results: a past state never changes again.
    """
    stored = UsersChanged.objects.filter(feature=flag.name, at__in=[version.at for version in versions])
    known = {
        Version(row.began, row.at): VersionChanges(tuple(map(ChangedPlace.of_document, row.places)), row.more)
        for row in stored
    }
    if new := {*versions} - known.keys():
        with consistent_reads():
            computed = _compute(flag, new)
        UsersChanged.objects.bulk_create(
            (
                UsersChanged(
                    feature=flag.name,
                    began=version.before,
                    at=version.at,
                    places=[place.document for place in changes.places],
                    more=changes.more,
                )
                for version, changes in computed.items()
            ),
            ignore_conflicts=True,
        )
        known |= computed
    return {version: known[version] for version in versions if version in known}


def count_recent_changes() -> None:
    """Counts the users of changes of the last week, the newest first, so that lists can show them soon."""
    counted = UsersChanged.objects.filter(feature=OuterRef("feature"), at=OuterRef("created_at"))
    events = AuditEvent.objects.filter(
        type__in=TYPES,
        created_at__gt=max(timezone.now() - RECENT, read_since()),
        feature__in=Flag.objects.values("name"),
    ).exclude(Exists(counted))
    changes = dict.fromkeys(events.newest_first().values_list("feature", "created_at")[:MAX_COUNTED])
    flags = Flag.objects.in_bulk([name for name, _ in changes], field_name="name")
    for name, at in changes:
        if name in flags:
            find_version_changes(flags[name], [Version.of_events([at])])


def _compute(flag: Flag, versions: Collection[Version]) -> dict[Version, VersionChanges]:
    timeline = read_timeline([flag.name], since=min(version.before for version in versions))
    order = [name for name in Environment.objects.names() if name in set(_list_used(flag))]
    changes = {}
    for version in versions:
        if not timeline.knows(version.before):
            continue
        before, after = (timeline.read_state(flag.name, at, flag_id=flag.pk) for at in version)
        differing = [name for name in order if _may_differ(name, before, after)]
        changes[version] = VersionChanges(
            tuple(
                _count_changes(
                    flag.name,
                    name,
                    [timeline.read_definitions([flag.name], name, at) for at in version],
                    version.at,
                )
                for name in differing[:MAX_PLACES]
            ),
            len(differing[MAX_PLACES:]),
        )
    return changes


def _list_used(flag: Flag) -> Iterable[str]:
    return flag.project.environments.values_list("name", flat=True)


def _may_differ(environment: str, before: FlagState | None, after: FlagState | None) -> bool:
    """Whether the flag was on in at least one state, and differs between them."""
    old, new = (
        by_environment(side).get(environment, NOTHING)
        if side is not None and not side["archived"]
        else NOTHING
        for side in (before, after)
    )
    if not (old["enabled"] or new["enabled"]):
        return False
    parents = [side["dependencies"] if side else [] for side in (before, after)]
    return old != new or parents[0] != parents[1]


def _count_changes(flag: str, environment: str, states: Sequence[Definitions], at: datetime) -> ChangedPlace:
    old, new = states
    if count_values(old) + count_values(new) > MAX_VALUES:
        return ChangedPlace(environment, None)
    before, after = compile_definitions(environment, old, new)
    contexts = generate_users((old, new), now=at, users=USERS)
    who = WhoChanges(before, after, contexts, [flag], budget=BUDGET)
    counts: dict[Change, int] = {
        change: number for change, number in who.counts.items() if change is not Change.NONE and number
    }
    unmeasured = tuple(each.sentence for each in find_unmeasured(who, old, new))
    return ChangedPlace(environment, counts, unmeasured)
