"""Definitions at a moment, reconstructed from the audit events since then, to verify versions."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from django.db import connection

from flagadmin.core.audit.events import EventType
from flagadmin.core.db.statements import fetch_rows
from playground.engine.definitions import FlagDefinition, SegmentDefinition
from projects.definition_parts import read_segments
from projects.definitions import find_used_segments, read_all_definitions
from projects.history.frozen.rewind import IN_ONE_ENVIRONMENT, TYPES, Back, PastEvent

# A flag that left a project has its later events in others. Segments of other projects may have been global. If a flag
# was created since, all later events are irrelevant: it only matters that it has changed. Of successive edits of one
# strategy, the oldest has the state before all of them, and the others are not read.
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


class Rewound(NamedTuple):
    """The fields of ``definitions_at.Changed``."""

    names: frozenset[str]
    flags: list[FlagDefinition]
    segments: dict[int, SegmentDefinition]
    changed_segments: frozenset[int]


def rewind_changed(projects: list[str], environment: str, at: datetime) -> Rewound:
    """Reads the changes. Seven statements, which need one transaction."""
    read = _read(projects, environment, at)
    existing = read.names - read.created
    back = Back(environment, read_all_definitions(environment, existing).flags if existing else ())
    for event in read.events:
        back.undo(event)
    flags = back.active(projects)
    with connection.cursor() as cursor:
        stored = read_segments(cursor, find_used_segments(flags) - back.segments.keys())
    return Rewound(frozenset(read.names), flags, stored | back.segments, frozenset(back.segments))


@dataclass(frozen=True, slots=True)
class _Read:
    """The ``events`` to revert, the ``names`` of all changed flags, and the ``created`` ones among them.

    The present state of created flags does not matter. An earlier flag with the name is restored from its deletion
    event.
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
