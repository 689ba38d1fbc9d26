"""Filters audit events, limits them to those that a caller may see, and finds those that change what flags answer."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Lower

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent, AuditEvents
from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.hook import Hook
from groups.access import Caller, Permission
from groups.models import User
from projects.models import Flag

# Events about accounts and access: only for admins and readers of the login history.
_ABOUT_ACCESS = ("user-", "service-account-", "group-", "role-", "api-token-", "pat-")
ACCESS_TYPES = [event.value for event in EventType if event.value.startswith(_ABOUT_ACCESS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Criteria for events. Empty ones do not filter.

    ``since`` is inclusive, ``until`` exclusive. ``text`` matches part of a name or of the comment, ignoring
    case, and ``person`` part of the actor's user name, or of their name on pages.
    """

    types: Sequence[str] = ()
    projects: Sequence[str] = ()
    environments: Sequence[str] = ()
    features: Sequence[str] = ()
    actors: Sequence[int] = ()
    person: str = ""
    since: datetime | None = None
    until: datetime | None = None
    text: str = ""


def readable_events(caller: Caller) -> AuditEvents:
    """Events of the projects that the caller may read.

    Events without a project, and those of a deleted project whose id was reused, are only for callers with a root role,
    and if the deleted project was private, only for admins.
    """
    if not caller.reads_installation:
        return in_present_projects(AuditEvent.objects.filter(caller.match_readable("project")))
    if caller.is_admin:
        return AuditEvent.objects.all()
    private = _find_deletions().filter(before__mode="private")
    events = AuditEvent.objects.exclude(Exists(private))
    if hidden := caller.rights.hidden:
        events = events.filter(Q(project=None) | ~Q(project__in=hidden))
    if caller.can(Permission.READ_LOGS):
        return events
    return events.exclude(type__in=ACCESS_TYPES, project=None)


def in_present_projects(events: AuditEvents) -> AuditEvents:
    """The events of projects that exist, without those of earlier ones with the same id."""
    return events.exclude(Exists(_find_deletions()))


def _find_deletions() -> AuditEvents:
    """The deletions of the project of an event, after it."""
    return AuditEvent.objects.filter(
        type=EventType.PROJECT_DELETED, project=OuterRef("project"), pk__gte=OuterRef("pk")
    )


def hide_projects(events: Iterable[AuditEvent], caller: Caller) -> list[AuditEvent]:
    """The events. For a move from an unreadable project, removes the projects: it reads as a move to here.

    One query if there are events of expectations.
    """
    listed = list(events)
    if not caller.reads_all_projects:
        expected = _read_expected_flags(listed)
        for event in listed:
            event.before, event.after = leave_out_projects(event, caller.can_read, expected)
    return listed


def leave_out_projects(
    event: AuditEvent, can_read: Callable[[str], bool], expected: Mapping[str, str] | None = None
) -> tuple[Any, Any]:
    """The event's states before and after, without their projects if one of them is unreadable.

    Lists of projects, and of roles and rules in them, such as those of a token or a group, keep the readable ones. A
    rule of a signal source is left out with its project, whose flag it names, and an expectation of a saved context
    with the project that its flag is in now. ``expected``: the projects of such flags; read if it is None.
    """
    sides = _limit_lists(event.before, can_read), _limit_lists(event.after, can_read)
    if event.type.startswith(_SAVED):
        flags = _read_expected_flags([event]) if expected is None else expected
        before, after = (_limit_expected(event, side, flags, can_read) for side in sides)
        sides = before, after
    documents = [side for side in sides if isinstance(side, dict)]
    projects = {side["project"] for side in documents if isinstance(side.get("project"), str)}
    if all(map(can_read, projects)):
        return sides
    drop = _drop_rule if event.type == EventType.SIGNAL_SOURCE_UPDATED else _drop_project
    return drop(sides[0], can_read), drop(sides[1], can_read)


def _limit_lists(document: Any, can_read: Callable[[str], bool]) -> Any:
    if not isinstance(document, dict):
        return document
    lists = {name: document[name] for name in _LISTS if isinstance(document.get(name), list)}
    if isinstance(document.get("suspended"), list):  # names of rules, until 1.4 without their projects
        document = {name: value for name, value in document.items() if name != "suspended"}
    return document | {
        name: [each for each in listed if _is_readable(each, can_read)] for name, listed in lists.items()
    }


_LISTS = ("projects", "grants", "rules")
_SAVED = "saved-context-"


def _read_expected_flags(events: Iterable[AuditEvent]) -> dict[str, str]:
    """The project of each flag, also archived, of which a saved context in these events expects something."""
    sides = [
        side for event in events if event.type.startswith(_SAVED) for side in (event.before, event.after)
    ]
    names = {
        each["flag"] for side in sides if isinstance(side, dict) for each in side.get("expectations", ())
    }
    return dict(Flag.objects.filter(name__in=names).values_list("name", "project_id")) if names else {}


def _limit_expected(
    event: AuditEvent, document: Any, projects: Mapping[str, str], can_read: Callable[[str], bool]
) -> Any:
    """Keeps the expectations of flags in readable projects. A deleted flag was one of the saved context's project."""
    if not isinstance(document, dict) or "expectations" not in document:
        return document

    def is_visible(flag: str) -> bool:
        return can_read(projects[flag]) if flag in projects else event.project is not None

    return document | {
        "expectations": [each for each in document["expectations"] if is_visible(each["flag"])]
    }


def _is_readable(entry: Any, can_read: Callable[[str], bool]) -> bool:
    project = entry.get("project_id", entry.get("project")) if isinstance(entry, dict) else entry
    return not isinstance(project, str) or project == "*" or can_read(project)


def _drop_project(document: Any, can_read: Callable[[str], bool]) -> Any:
    if not isinstance(document, dict):
        return document
    return {key: value for key, value in document.items() if key != "project"}


def _drop_rule(document: Any, can_read: Callable[[str], bool]) -> Any:
    return document if isinstance(document, dict) and can_read(document.get("project", "")) else None


def narrow_events(events: AuditEvents, criteria: EventFilter) -> AuditEvents:
    for field, values in (
        ("type", criteria.types),
        ("project", criteria.projects),
        ("environment", criteria.environments),
        ("feature", criteria.features),
        ("actor_id", criteria.actors),
    ):
        if values:
            events = events.filter(**{f"{field}__in": values})
    if criteria.person:
        people = User.objects.filter(name__icontains=criteria.person).values("pk")
        events = events.filter(Q(actor_name__icontains=criteria.person) | Q(actor_id__in=people))
    if criteria.since is not None:
        events = events.filter(created_at__gte=criteria.since)
    if criteria.until is not None:
        events = events.filter(created_at__lt=criteria.until)
    return events.filter(_match_mentions(criteria.text)) if criteria.text else events


def list_event_creators(caller: Caller) -> list[User]:
    """The accounts with an event that the caller may see, by user name. Deleted accounts are not listed. One query."""
    latest = readable_events(caller).filter(actor_id=OuterRef("pk")).newest_first().values("pk")[:1]
    return list(User.objects.filter(Exists(latest)).order_by(Lower("username")))


def _match_mentions(text: str) -> Q:
    fields = ("type", "project", "environment", "feature", "subject", "actor_name", "comment")
    conditions = Q()
    for field in fields:
        conditions |= Q(**{f"{field}__icontains": text})
    return conditions


def archived_by(names: Collection[str]) -> dict[str, str]:
    """The user who archived each of these flags last, by the flag's name. Two queries."""
    events = AuditEvent.objects.filter(feature__in=list(names), type=EventType.FEATURE_ARCHIVED)
    last = events.order_by("feature", "-id").distinct("feature")
    rows = list(last.values_list("feature", "created_at", "actor_id", "actor_name"))
    return {name: change.name for name, change in _name_actors(rows).items()}


class LastChange(NamedTuple):
    """``name``: who made it, as shown on pages."""

    name: str
    at: datetime


_LAST = """
SELECT f.name, a.created_at, a.actor_id, a.actor_name
  FROM projects_flag f
 CROSS JOIN LATERAL (SELECT created_at, actor_id, actor_name FROM audit_auditevent
                      WHERE feature = f.name AND project = f.project_id
                      ORDER BY created_at DESC, id DESC LIMIT 1) a
 WHERE f.name = ANY(%s)
"""


def read_last_changes(names: Collection[str]) -> dict[str, LastChange]:
    """The last change of each of these flags in its project, by the flag's name. Two queries."""
    return _name_actors(fetch_rows(_LAST, [list(names)]))


def _name_actors(rows: Sequence[tuple[Any, ...]]) -> dict[str, LastChange]:
    people = User.objects.in_bulk([actor_id for _, _, actor_id, _ in rows if actor_id is not None])
    return {
        flag: LastChange(people[actor_id].display_name if actor_id in people else name, at)
        for flag, at, actor_id, name in rows
    }


TYPES = [
    kind.value
    for kind in (
        E.FEATURE_CREATED, E.FEATURE_DELETED, E.ENVIRONMENT_DELETED, E.SEGMENT_UPDATED, E.SEGMENT_DELETED,
        E.PROJECT_DELETED, E.FEATURE_METADATA_UPDATED, E.FEATURE_STALE_ON, E.FEATURE_STALE_OFF, E.FEATURE_ARCHIVED,
        E.FEATURE_REVIVED, E.FEATURE_PROJECT_CHANGE, E.FEATURE_ENVIRONMENT_ENABLED, E.FEATURE_ENVIRONMENT_DISABLED,
        E.FEATURE_ENVIRONMENT_VARIANTS_UPDATED, E.FEATURE_STRATEGY_ADD, E.FEATURE_STRATEGY_UPDATE,
        E.FEATURE_STRATEGY_REMOVE, E.FEATURE_STRATEGY_ORDER_CHANGED, E.FEATURE_DEPENDENCY_ADDED,
        E.FEATURE_DEPENDENCY_REMOVED, E.FEATURE_IMPORTED, E.IMPORT_UNDONE, E.FEATURE_PROMOTED, E.PROMOTION_UNDONE,
        E.FEATURE_REVERTED,
    )
]  # fmt: skip
"""The types of events that change definitions."""


def find_events(moments: Collection[datetime], names: Collection[str]) -> dict[datetime, int]:
    """The id of the last audit event of each of these moments: of the first flag if it has one, else of another of
    these, or one that names no flag. A change that was made outside flagadmin has none. One query."""
    first, *_ = names
    rows = AuditEvent.objects.filter(created_at__in=list(moments)).order_by()
    found: dict[datetime, tuple[bool, bool, int]] = {}
    for pk, moment, feature in rows.values_list("id", "created_at", "feature").iterator():
        if feature in names or feature is None:
            key = feature == first, feature is not None, pk
            found[moment] = max(found.get(moment, key), key)
    return {moment: pk for moment, (*_, pk) in found.items()}


read_settled_id: Hook[[], int] = Hook("projects.history.queries.read_settled_id", lambda: 0)
"""The id up to which no further event can appear. 0 if unknown."""
