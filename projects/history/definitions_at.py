"""Flags at a past moment, from versions. A moment before the first versions is unknown.

A version of a flag is a document in the form of deletion events: the flag's own fields, ``dependencies`` (its parents)
and ``environments``, a list of ``name enabled variants strategies``. It has no tags and links.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import StringIO
from typing import Any, NamedTuple

from django.conf import settings
from django.core.management import call_command
from django.db.models import Count, F, Max, Min, Subquery
from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.statements import fetch_row, fetch_rows
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.document import Document
from flagadmin.core.errors import Conflict
from flagadmin.core.server.memory import collector_paused
from playground.engine.definitions import FlagDefinition, SegmentDefinition
from projects.definitions import Definitions, find_unequal, read_definitions
from projects.history.timeline import PRESENT, read_timeline
from projects.models import Flag, OutsideChange
from projects.models.versions import BEGINNING, NEVER, VersionsSince
from projects.states import NOTHING, FlagState

# Flags of these projects now or since. An ended row is found by its end, a new one by its beginning.
_CHANGED = "(valid_from > %(at)s OR (valid_to > %(at)s AND valid_to < %(never)s))"
_CHANGED_FLAGS = f"""
SELECT name FROM projects_flagversion WHERE project_id = ANY(%(projects)s) AND valid_to > %(at)s AND id IN (
       SELECT id FROM projects_flagversion WHERE {_CHANGED}
        UNION SELECT flag_id FROM projects_flagenvironmentversion WHERE environment_id = %(environment)s AND {_CHANGED}
        UNION SELECT flag_id FROM projects_strategyversion WHERE environment_id = %(environment)s AND {_CHANGED}
        UNION SELECT flag_id FROM projects_dependencyversion WHERE {_CHANGED}
        UNION SELECT flag_id FROM projects_strategyversion WHERE environment_id = %(environment)s AND id IN (
              SELECT strategy_id FROM projects_strategysegmentversion WHERE {_CHANGED}))
"""  # noqa: S608 - constants of our own
_CHANGED_SEGMENTS = """
SELECT id FROM projects_segmentversion
 WHERE valid_from <= %(at)s AND valid_to > %(at)s AND valid_to < %(never)s
"""


def is_in_future(moment: datetime) -> bool:
    """Whether it is in the future by this server's clock and by the database's, which dates events."""
    if moment <= timezone.now():
        return False
    return bool(fetch_row("SELECT %s > clock_timestamp()", [moment])[0])


def just_before(moment: datetime) -> datetime:
    """The last moment before the effect of this one."""
    return moment - timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Changed:
    """The changes since a moment: the ``names`` of flags, and the ``flags`` that existed then, in their old form.

    ``segments`` are in their old form: all that have changed, and all that these flags used.
    """

    names: frozenset[str]
    flags: list[FlagDefinition]
    segments: dict[int, SegmentDefinition]
    changed_segments: frozenset[int]

    @classmethod
    def between(cls, now: Definitions, then: Definitions) -> "Changed":
        """The differences of two states that were read together."""
        old, new = now.by_name(), then.by_name()
        names = find_unequal(old, new)
        segments = find_unequal(now.segments, then.segments)
        flags = [new[name] for name in sorted(names & new.keys())]
        return cls(frozenset(names), flags, dict(then.segments), frozenset(segments))

    def applied(self, now: Definitions, flags: Collection[str] | None = None) -> Definitions:
        """The definitions of the moment, based on those that were read together with this."""
        flags_then = [flag for flag in self.flags if flags is None or flag["name"] in flags]
        flags_then += (flag for flag in now.flags if flag["name"] not in self.names)
        flags_then.sort(key=lambda flag: flag["name"])
        return Definitions.of(flags_then, now.segments | self.segments)


@collector_paused
def read_changed_since(projects: Iterable[str], environment: str, at: datetime) -> Changed:
    """Flags of these projects at a moment, if anything about them has changed since.

    The projects are those of that moment; some may no longer exist. At most nine statements, in one transaction.
    Raises Conflict for an unknown moment.
    """
    project_ids = list(projects)
    with consistent_reads():
        check_known(at)
        values = {"projects": project_ids, "environment": environment, "at": at, "never": NEVER}
        names = {name for (name,) in fetch_rows(_CHANGED_FLAGS, values)}
        segments = frozenset(pk for (pk,) in fetch_rows(_CHANGED_SEGMENTS, values))
        then = read_definitions(project_ids, environment, flags=names, segments=segments, at=at)
    return Changed(frozenset(names), then.flags, then.segments, segments)


def flags_then(
    flags: Iterable[str], projects: Collection[str], environment: str, at: datetime
) -> Definitions:
    """A few flags and their parents at a moment, if they were active in one of these projects then.

    One statement. Raises Conflict for an unknown moment.
    """
    timeline = read_timeline(flags, environment=environment, since=at, until=at)
    check_known(at, timeline.since)
    then = timeline.read_definitions(timeline.asked, environment, at)
    return Definitions.of((flag for flag in then.flags if flag["project"] in projects), then.segments)


def read_since() -> datetime:
    """From when versions are complete; BEGINNING if always. One query."""
    return VersionsSince.objects.values_list("since", flat=True).first() or BEGINNING


def fill_past() -> None:
    """Stores the versions from before the upgrade to 1.4.0, as the command does. One query if they are complete."""
    if VersionsSince.objects.filter(since__gt=BEGINNING, since__lte=F("kept_since")).exists():
        call_command("backfill_versions", stdout=StringIO())


def explain_unknown(at: datetime, since: datetime) -> str:
    """Why a moment is unknown; "" if versions, which are complete since then, reach back to it."""
    if at >= since:
        return ""
    earlier = (
        f"Earlier ones are deleted after {settings.VERSIONS_DAYS} days (FLAGADMIN_VERSIONS_DAYS)"
        if settings.VERSIONS_DAYS
        else "Servers store earlier ones after an upgrade, as flagadmin backfill_versions does"
    )
    return (
        f"the flags of {at:%d %B %Y, %H:%M:%S} UTC are unknown: their versions are stored from "
        f"{since:%d %B %Y, %H:%M:%S} UTC on. {earlier}"
    )


def check_known(at: datetime, since: datetime | None = None) -> None:
    """Raises Conflict for an unknown moment. ``since``: from when versions are complete, if it has been read."""
    if reason := explain_unknown(at, read_since() if since is None else since):
        raise Conflict(f"{reason[0].upper()}{reason[1:]}.")


@dataclass(frozen=True, slots=True)
class Deleted:
    projects: frozenset[str]
    environments: frozenset[str]


def read_deleted_since(at: datetime) -> Deleted:
    """The projects and the environments that have been deleted since a moment."""
    kinds = (EventType.PROJECT_DELETED.value, EventType.ENVIRONMENT_DELETED.value)
    rows = AuditEvent.objects.filter(type__in=kinds, created_at__gt=at).order_by()
    names: dict[str, set[Any]] = {kind: set() for kind in kinds}
    for event in rows.only("type", "project", "before"):
        before: Any = event.before
        names[event.type].add(event.project or before["name"])
    return Deleted(frozenset(names[kinds[0]]), frozenset(names[kinds[1]]))


@dataclass(frozen=True, slots=True)
class ChangedOutside:
    """Changes of a project's flags without an event, whose earlier state is unknown."""

    project: str
    count: int
    first: datetime
    last: datetime


def read_outside_changes(projects: Iterable[str], since: datetime) -> list[ChangedOutside]:
    """The changes that obscure a past moment. Since versions are kept, they include such changes. One query."""
    kept_since = Subquery(VersionsSince.objects.values("kept_since")[:1])
    rows = OutsideChange.objects.filter(project_id__in=list(projects), noticed_at__gt=since)
    rows = rows.filter(noticed_at__lt=kept_since)
    times = rows.order_by("project_id").values_list("project_id")
    counted = times.annotate(Count("pk"), Min("noticed_at"), Max("noticed_at"))
    return [ChangedOutside(*row) for row in counted]


_MEMBERS = (
    "name", "project", "createdAt", "stale", "impressionData", "archived", "dependencies", "description", "type",
    "owner",
)  # fmt: skip


def read_present_version(flag: Flag) -> FlagState:
    """The stored flag. One query."""
    state = read_timeline([flag.name], since=PRESENT).read_state(flag.name, PRESENT)
    assert state is not None
    return state


def make_seen_version(document: Mapping[str, Any], environments: Iterable[str]) -> Document:
    """The parts that a flag's version shares with its `GET`, which shows its project's environments."""
    places = {place["name"]: place for place in document["environments"]}
    return {
        **{member: document.get(member) for member in _MEMBERS},
        "environments": [
            {"name": name} | {key: places.get(name, NOTHING)[key] for key in NOTHING}
            for name in sorted(environments)
        ],
    }


def read_version(flag: Flag, at: datetime) -> FlagState | None:
    """The flag at a moment; None if it did not exist. One query. Raises Conflict if it is unknown."""
    timeline = read_timeline([flag.name], since=at)
    check_known(at, timeline.since)
    return timeline.read_state(flag.name, at, flag_id=flag.pk)


class Versions(NamedTuple):
    """The flag now, after a change, and before it. None if it did not exist."""

    now: FlagState
    after: FlagState | None
    before: FlagState | None


def find_versions_around(flag: Flag, first: datetime, last: datetime) -> Versions:
    """``first`` and ``last`` are the times of the change's events. One query. Raises Conflict if it is unknown."""
    timeline = read_timeline([flag.name], since=just_before(first))
    check_known(just_before(first), timeline.since)
    now = timeline.read_state(flag.name, PRESENT)
    assert now is not None
    after, before = (timeline.read_state(flag.name, at, flag_id=flag.pk) for at in (last, just_before(first)))
    return Versions(now, after, before)
