"""Groups audit events into changes: everything that one actor did in one request, such as an import."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain

from django.db.models import Q
from django.db.models.functions import TruncHour

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent, AuditEvents
from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.document import Document
from groups.access import Caller
from groups.models import User
from projects.history.descriptions import Part, describe
from projects.history.field_changes import FieldChange, Names, changes_of, find_names_in
from projects.history.queries import hide_projects, readable_events
from projects.models import UsersChanged
from projects.projects.links import read_comments

MAX_EVENTS = 20
"""Events of one change shown on a page."""
MAX_COUNTED = 10_000
MAX_NAMED = 3
"""Flags named in the sentence of a change."""
_SUMMARIES = (E.FEATURES_IMPORTED, E.IMPORT_UNDONE, E.FEATURES_PROMOTED, E.PROMOTION_UNDONE)
"""Events that are recorded last and summarize all others of their change."""
_APPLIED = (E.CHANGE_REQUEST_APPLIED, E.CHANGE_REQUEST_APPLIED_AS_SCHEDULED)
_STARTED_PLAN = "started release plan {subject} of {feature} in {environment}"
_COUNTS = (("create", "new", "on"), ("change", "changed", "info"), ("same", "the same", ""))

# Events of one change share the request id, actor and hour: clients may reuse an id later.
_EVENTS = """
SELECT head.id, events.number, events.ids FROM audit_auditevent head CROSS JOIN LATERAL (
       SELECT count(*) AS number, (array_agg(id ORDER BY created_at DESC, id DESC))[:%s] AS ids FROM (
              SELECT e.id, e.created_at FROM ({readable}) AS e
               WHERE e.request_id = head.request_id AND e.request_id <> '' AND e.actor_name = head.actor_name
                 AND date_trunc('hour', e.created_at, 'UTC') = date_trunc('hour', head.created_at, 'UTC')
               ORDER BY e.request_id, e.id DESC LIMIT %s) AS counted) AS events
 WHERE head.id = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One event of a change, with its sentence and changed fields. ``name`` is the flag or subject.

    ``whom_url``: the page with the users affected by the change of this flag, "" without one.
    """

    event: AuditEvent
    actor: "Actor"
    name: str
    sentence: Sequence[Part]
    fields: Sequence[FieldChange]
    whom_url: str = ""


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a change. ``robot``: a service account, an API token or the system."""

    name: str
    robot: bool


@dataclass(frozen=True, slots=True)
class GroupedChange:
    """An entry of the activity.

    ``event`` is its newest event; the ``sentence`` follows the actor's name. ``rows`` are its last MAX_EVENTS events
    in chronological order; ``number`` counts all, up to MAX_COUNTED. An import's own event is not among them.
    ``pills`` are its counts: (text, class of the pill). ``comment`` explains the change, "" without one.
    ``revert_url``: the page that reverts it, "" if none is offered. ``users``: sentences about the generated users
    whose result it changed, as far as they have been counted.
    """

    event: AuditEvent
    actor: Actor
    sentence: Sequence[Part]
    rows: Sequence[Row]
    number: int
    pills: Sequence[tuple[str, str]]
    comment: Sequence[Part]
    revert_url: str = ""
    users: Sequence[str] = ()

    @property
    def more(self) -> int:
        return self.number - len(self.rows)

    @property
    def fields(self) -> Sequence[FieldChange]:
        """The changed fields of a single event; the rows have those of several."""
        return self.rows[0].fields if len(self.rows) == 1 else ()

    @property
    def project(self) -> str | None:
        """The project, if all events have the same."""
        projects = {row.event.project for row in self.rows} or {self.event.project}
        return next(iter(projects)) if len(projects) == 1 else None

    @property
    def is_complete(self) -> bool:
        """Whether the sentence says everything, so that rows and fields would repeat it."""
        if any(part.mark for part in self.sentence) or _is_of_one_request(self.rows):
            return True
        return self.number <= MAX_NAMED and not self.pills and not any(row.fields for row in self.rows)


@dataclass(frozen=True, slots=True)
class ChangePage:
    """``next`` is the value of ``before`` for the next page, None on the last one."""

    changes: Sequence[GroupedChange]
    next: int | None


def change_page(
    events: AuditEvents, *, caller: Caller, before: int | None = None, size: int = 50
) -> ChangePage:
    """The changes with one of these events, newest first, in full: filters select changes, not rows.

    ``events`` come from ``readable_events`` and may be filtered. ``before`` is the id of the last page's
    ``next``. About eight queries.
    """
    heads = _find_heads(events, before, size + 1)
    groups = _group_events(heads[:size], caller)
    ids = [pk for _, members in groups for pk in members]
    events_by_id = AuditEvent.objects.in_bulk(ids)
    hide_projects(events_by_id.values(), caller)
    names, actors = find_names_in(events_by_id.values()), find_actors(events_by_id.values())
    comments = read_comments(events_by_id[members[0]] for _, members in groups)
    counted = users_changed(events_by_id.values())
    changes = [
        replace(
            _change(
                [events_by_id[pk] for pk in members], number, names, actors, comments.get(members[0], ())
            ),
            users=_describe_users([events_by_id[pk] for pk in members], counted),
        )
        for number, members in groups
    ]
    return ChangePage(changes, heads[size - 1] if len(heads) > size else None)


def users_changed(events: Iterable[AuditEvent]) -> dict[int, list[Document]]:
    """Counts the generated users whose result the change of each event changed, by the event's id. One query.

    For each environment: ``environment``, ``users`` (all that were generated), ``changed`` (None if conditions have too
    many values), ``changes`` (numbers by kind: ``offToOn``, ``onToOff``, ``variant``, ...) and ``unmeasured``
    (sentences). A change is all that one transaction changed of the flag; events of changes that have not been
    counted yet are missing.
    """
    return {pk: row.places for pk, row in find_counts(events).items()}


def find_counts(events: Iterable[AuditEvent]) -> dict[int, UsersChanged]:
    """The stored numbers of ``users_changed``, with that of the environments that were not compared."""
    listed = [event for event in events if event.feature]
    if not listed:
        return {}
    rows = UsersChanged.objects.filter(
        feature__in={event.feature for event in listed}, at__in={event.created_at for event in listed}
    )
    found = {(row.feature, row.at): row for row in rows.order_by("began")}
    return {event.pk: found[key] for event in listed if (key := (event.feature, event.created_at)) in found}


def _describe_users(events: Iterable[AuditEvent], counted: Mapping[int, list[Document]]) -> list[str]:
    """``production: 2,968 of 10,000 users``; for several flags the most of one."""
    known = [event for event in events if event.pk in counted]
    most: dict[str, Document] = {}
    for place in chain.from_iterable(counted[event.pk] for event in known):
        if (place["changed"] or 0) > most.get(place["environment"], {"changed": 0})["changed"]:
            most[place["environment"]] = place
    prefix = "up to " if len({event.feature for event in known}) > 1 else ""
    return [
        f"{name}: {prefix}{place['changed']:,} of {place['users']:,} users"
        for name, place in sorted(most.items())
    ]


def change_of(event: AuditEvent, *, caller: Caller) -> AuditEvents:
    """All events of the change that this event belongs to, newest first, for a list with pages."""
    if not event.request_id:
        return readable_events(caller).filter(pk=event.pk)
    same = _match_same_change(*_make_key(event.request_id, event.actor_name, event.created_at))
    return readable_events(caller).filter(same).newest_first()


def make_event_rows(events: Iterable[AuditEvent], *, caller: Caller) -> list[Row]:
    """Each of these events with its sentence and changed fields, in order."""
    listed = hide_projects(events, caller)
    names, people = find_names_in(listed), find_actors(listed)
    return [_make_row(event, names, people) for event in listed]


def _make_row(event: AuditEvent, names: Names, people: Mapping[int, User]) -> Row:
    name, actor = event.feature or _link_subject(event), make_actor(event, people)
    return Row(event, actor, name, describe(event, names), changes_of(event, names))


def _link_subject(event: AuditEvent) -> str:
    """A change request by its kind, not by its bare number."""
    name = event.subject or ""
    return f"Request {name}" if _is_of_request(event) else name


def _is_of_request(event: AuditEvent) -> bool:
    return event.type.startswith("change-") and (event.subject or "").isdigit()


def _is_of_one_request(rows: Sequence[Row]) -> bool:
    return len({row.name for row in rows}) == 1 and all(_is_of_request(row.event) for row in rows)


Key = tuple[str, str, datetime]


def _find_heads(events: AuditEvents, before: int | None, limit: int) -> list[int]:
    """The newest event of each change, newest first. Reads as many events as necessary.

    A change that fills most of the events read, such as an import, is excluded from the next read.
    """
    heads: dict[object, int] = {}
    shown_keys: set[object] = set()
    unread, last = events.newest_first(), before
    while True:
        rows = list((unread if last is None else unread.older_than(last)).values_list(*_KEY)[: limit * 4])
        keys = [(pk, _make_key(*key) if key[0] else pk) for pk, *key in rows]
        if before is not None:
            shown_keys |= _list_keys_shown_before(events, before, keys)
        for pk, key in keys:
            if key not in shown_keys:
                heads.setdefault(key, pk)
        if len(heads) >= limit or len(rows) < limit * 4:
            return list(heads.values())[:limit]
        last = rows[-1][0]
        key, number = Counter(key for _, key in keys).most_common(1)[0]
        if isinstance(key, tuple) and number > limit:
            unread = unread.exclude(_match_same_change(*key))


_KEY = ("pk", "request_id", "actor_name", "created_at")


def _make_key(request: str, actor: str, created_at: datetime) -> Key:
    return request, actor, created_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _match_same_change(request: str, actor: str, hour: datetime) -> Q:
    until = hour + timedelta(hours=1)
    return Q(request_id=request, actor_name=actor, created_at__gte=hour, created_at__lt=until)


def _list_keys_shown_before(
    events: AuditEvents, before: int, keys: Sequence[tuple[int, object]]
) -> set[object]:
    """The changes, among these, that began on an earlier page."""
    requests = {key[0] for _, key in keys if isinstance(key, tuple)}
    newer = events.not_older_than(before).filter(~Q(request_id=""), request_id__in=requests).order_by()
    hours = newer.annotate(hour=TruncHour("created_at", tzinfo=UTC))
    return set(hours.values_list("request_id", "actor_name", "hour").distinct())


def _group_events(heads: Sequence[int], caller: Caller) -> list[tuple[int, list[int]]]:
    """The number of events of each change, and the ids of the first ones it shows."""
    if not heads:
        return []
    readable, parameters = (
        readable_events(caller)
        .order_by()
        .values("id", "request_id", "actor_name", "created_at")
        .query.sql_with_params()
    )
    values = [MAX_EVENTS, *parameters, MAX_COUNTED, list(heads)]
    rows = fetch_rows(_EVENTS.format(readable=readable), values)
    changes = {pk: (number, ids) for pk, number, ids in rows}
    # An event recorded without a request is a change by itself.
    return [(changes[pk][0] or 1, changes[pk][1] or [pk]) for pk in heads]


def find_actors(events: Iterable[AuditEvent]) -> dict[int, User]:
    return User.objects.in_bulk({event.actor_id for event in events if event.actor_id is not None})


def make_actor(event: AuditEvent, people: Mapping[int, User]) -> Actor:
    user = people.get(event.actor_id) if event.actor_id is not None else None
    name = user.display_name if user is not None else event.actor_name
    return Actor(name, event.actor_id is None or (user is not None and user.is_service))


# One entry --------------------------------------------------------------------------------------------------


def _change(
    events: Sequence[AuditEvent],
    number: int,
    names: Names,
    people: Mapping[int, User],
    comment: Sequence[Part],
) -> GroupedChange:
    """``events`` are the newest of the change, newest first."""
    newest, sums_up = events[0], events[0].type in _SUMMARIES
    listed = list(events[1:] if sums_up and len(events) > 1 else events)
    rows = [_make_row(event, names, people) for event in reversed(listed)]
    return GroupedChange(
        event=newest,
        actor=make_actor(newest, people),
        sentence=describe(newest, names) if sums_up else _make_sentence(rows, number),
        rows=rows,
        number=number - (1 if sums_up and number > 1 else 0),
        pills=_list_pills(newest) if newest.type in (E.FEATURES_IMPORTED, E.FEATURES_PROMOTED) else (),
        comment=comment,
    )


def _list_pills(event: AuditEvent) -> list[tuple[str, str]]:
    counts = event.after if isinstance(event.after, dict) else {}
    return [(f"{counts[key]:,} {label}", mark) for key, label, mark in _COUNTS if counts.get(key)]


def _make_sentence(rows: Sequence[Row], number: int) -> list[Part]:
    """One sentence for several events: what caused the others, with names, joined by "and", or with their number."""
    if len(rows) == 1:
        return list(rows[0].sentence)
    if together := _join_flags(rows, number):
        return together
    if _is_of_one_request(rows):
        sent = (row for row in rows if row.event.type == E.CHANGE_REQUEST_SENT_TO_REVIEW)
        return list(next(sent, rows[0]).sentence)
    applied = next((row for row in rows if row.event.type in _APPLIED), None)
    if applied is not None:
        others = [row for row in rows if row is not applied]
        return [*applied.sentence, Part(": "), *_make_sentence(others, number - 1)]
    types = {row.event.type: row for row in rows}
    if E.RELEASE_PLAN_MILESTONE_STARTED in types and (added := types.get(E.RELEASE_PLAN_ADDED)):
        return describe(added.event, template=_STARTED_PLAN)
    chart, safeguard = types.get(E.METRIC_CHART_CHANGED), types.get(E.SAFEGUARD_CHANGED)
    if number == 2 and chart and safeguard and chart.event.subject == safeguard.event.subject:
        return [*safeguard.sentence, Part(" and its chart")]
    if number == 2:
        return [*rows[0].sentence, Part(" and "), *rows[1].sentence]
    return [*rows[0].sentence, Part(f" and made {number - 1:,} more changes")]


def _join_flags(rows: Sequence[Row], number: int) -> list[Part] | None:
    """``archived 3 flags: a, b and c`` if all events differ only in their flag."""
    around = {_split_text_around_name(row) for row in rows}
    if len(around) != 1 or None in around:
        return None
    before, after = next(pair for pair in around if pair is not None)
    flags = [next(part for part in row.sentence if part.text == row.name) for row in rows[:MAX_NAMED]]
    named = [Part(before), Part(f"{number:,} flags"), Part(after), Part(": ")]
    for index, flag in enumerate(flags):
        last = index == len(flags) - 1 and number == len(flags)
        named += [Part(" and " if last else ", ")] if index else []
        named.append(flag)
    if number > len(flags):
        named.append(Part(f" and {number - len(flags):,} more"))
    return [part for part in named if part.text]


def _split_text_around_name(row: Row) -> tuple[str, str] | None:
    """The text before and after the flag's name; None if the sentence names no flag."""
    if not row.event.feature:
        return None
    texts = [part.text for part in row.sentence]
    place = texts.index(row.name) if row.name in texts else None
    return None if place is None else ("".join(texts[:place]), "".join(texts[place + 1 :]))
