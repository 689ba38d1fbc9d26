"""The definitions of flags at a moment in the past, read from the audit events since then."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Count, Max, Min
from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.statements import fetch_row, fetch_rows
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.server.memory import collector_paused
from playground.engine.definitions import FlagDefinition, SegmentDefinition
from projects.definition_parts import read_segments
from projects.definitions import (
    Definitions,
    find_parents,
    find_unequal,
    find_used_segments,
    read_all_definitions,
)
from projects.history.rewind import IN_ONE_ENVIRONMENT, TYPES, Back, PastEvent
from projects.history.versions import read_events_since
from projects.models import OutsideChange

# A flag that has left a project since has its later events in others. Segments of other projects may have been global.
# If a flag was created since, everything later is superseded: it only matters that it has changed. Of edits of one
# strategy with nothing between them, the oldest says what it was before all of them, and the others are not read.
_EVENTS = """
SELECT creation IS NOT NULL, id > creation, type, environment, feature,
       CASE WHEN id > creation THEN NULL ELSE before END,
       CASE WHEN id >= creation THEN NULL ELSE after END,
       CASE WHEN id > creation THEN NULL ELSE earlier END
  FROM (SELECT e.*, c.id AS creation,
               e.type = %(edit)s AND (e.type, e.environment, e.before->>'id')
                 = lead((e.type, e.environment, e.before->>'id')) OVER (PARTITION BY e.feature ORDER BY e.id DESC)
                 AS is_edited_before
          FROM audit_auditevent e
          LEFT JOIN (SELECT feature, min(id) AS id FROM audit_auditevent
                      WHERE created_at > %(at)s AND type = %(created)s GROUP BY feature) c ON c.feature = e.feature
         WHERE e.created_at > %(at)s AND e.type = ANY(%(types)s)
           AND (e.environment = %(environment)s OR e.environment IS NULL OR e.type <> ALL(%(in_one)s))
           AND (e.project = ANY(%(projects)s) OR e.type = ANY(%(anywhere)s)
                OR e.feature IN (SELECT m.feature FROM audit_auditevent m
                                  WHERE m.created_at > %(at)s AND m.type = 'feature-project-change'
                                    AND m.before->>'project' = ANY(%(projects)s)))) events
 WHERE is_edited_before IS NOT TRUE
 ORDER BY id DESC
"""
_ANYWHERE = [
    EventType.SEGMENT_UPDATED.value,
    EventType.SEGMENT_DELETED.value,
    EventType.PROJECT_DELETED.value,
    EventType.ENVIRONMENT_DELETED.value,
]


def is_in_future(moment: datetime) -> bool:
    """Whether it is later than now by this server's clock and by the database's, from which events have their times."""
    if moment <= timezone.now():
        return False
    return bool(fetch_row("SELECT %s > clock_timestamp()", [moment])[0])


def just_before(moment: datetime) -> datetime:
    """The last moment that does not show what happened then."""
    return moment - timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Changed:
    """The changes since a moment: the ``names`` of flags, and the ``flags`` that existed then, as they were.

    ``segments`` are as they were: all that have changed, and all that these flags used.
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
        """Definitions as they were, from those that were read together with this."""
        flags_then = [flag for flag in self.flags if flags is None or flag["name"] in flags]
        flags_then += (flag for flag in now.flags if flag["name"] not in self.names)
        flags_then.sort(key=lambda flag: flag["name"])
        return Definitions.of(flags_then, now.segments | self.segments)


@collector_paused
def read_changed_since(projects: Iterable[str], environment: str, at: datetime) -> Changed:
    """Reads flags of these projects as they were at a moment, if anything about them has changed since.

    The projects are those of that moment; some may no longer exist. Seven statements in one transaction.
    """
    project_ids = list(projects)
    with consistent_reads():
        read = _read(project_ids, environment, at)
        existing = read.names - read.created
        back = Back(environment, read_all_definitions(environment, existing).flags if existing else ())
        for event in read.events:
            back.undo(event)
        flags = back.active(project_ids)
        with connection.cursor() as cursor:
            stored = read_segments(cursor, find_used_segments(flags) - back.segments.keys())
    return Changed(frozenset(read.names), flags, stored | back.segments, frozenset(back.segments))


@collector_paused
def flags_then(
    flags: Iterable[str], projects: Collection[str], environment: str, at: datetime
) -> Definitions:
    """A few flags and their parents as they were, those that were active in one of these projects then.

    Reads only their events, however much else has changed since: eight statements, six without parents.
    """
    names = set(flags)
    with consistent_reads():
        back = _take_flags_back(names, environment, at)
        parents = find_parents(back.flags[name] for name in names & back.flags.keys())
        if parents - names:
            back = _take_flags_back(names := names | parents, environment, at)
        flags_at_moment = [flag for flag in back.active(projects) if flag["name"] in names]
        with connection.cursor() as cursor:
            stored = read_segments(cursor, find_used_segments(flags_at_moment) - back.segments.keys())
    return Definitions.of(flags_at_moment, stored | back.segments)


def _take_flags_back(names: Collection[str], environment: str, at: datetime) -> Back:
    back = Back(environment, read_all_definitions(environment, names).flags)
    for _, event in read_events_since(names, at=at, segments=True):
        back.undo(event)
    return back


@dataclass(frozen=True, slots=True)
class _Read:
    """The ``events`` to take back, the ``names`` of all flags that have changed, and of those the ``created`` ones.

    What these are now does not matter. One that there was before, too, comes back from the event of its deletion.
    """

    events: list[PastEvent] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    created: set[str] = field(default_factory=set)


def _read(projects: list[str], environment: str, at: datetime) -> _Read:
    read = _Read()
    values = {
        "at": at,
        "types": TYPES,
        "environment": environment,
        "in_one": IN_ONE_ENVIRONMENT,
        "projects": projects,
        "anywhere": _ANYWHERE,
        "created": EventType.FEATURE_CREATED.value,
        "edit": EventType.FEATURE_STRATEGY_UPDATE.value,
    }
    for is_creation, is_superseded, kind, place, feature, *documents in fetch_rows(_EVENTS, values):
        if feature is not None:
            read.names.add(feature)
        if is_creation:
            read.created.add(feature)
        if not is_superseded:
            event = PastEvent.of_row(kind, place, feature, *documents)
            read.events.append(event)
            if event.earlier is not None:
                read.names.update(event.earlier.get("children") or ())
                read.names.update(event.earlier.get("flags") or ())
    return read


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
    """Changes of a project's flags that left no event: what there was before them is not known."""

    project: str
    count: int
    first: datetime
    last: datetime


def read_outside_changes(projects: Iterable[str], since: datetime) -> list[ChangedOutside]:
    rows = OutsideChange.objects.filter(project_id__in=list(projects), noticed_at__gt=since)
    times = rows.order_by("project_id").values_list("project_id")
    counted = times.annotate(Count("pk"), Min("noticed_at"), Max("noticed_at"))
    return [ChangedOutside(*row) for row in counted]
