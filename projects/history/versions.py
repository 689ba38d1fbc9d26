"""The versions of a flag: what it was in all environments after one of its audit events, or at a moment.

A version is a document as events of deleted flags have it: the flag's own fields, ``dependencies`` (its parents) and
``environments``, a list of ``name enabled variants strategies``. It has no tags and links.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.document import Document
from playground.engine.definitions import FlagDefinition
from projects.flags.queries import make_metadata_document, read_dependency_documents, read_strategy_documents
from projects.history.flag_parts import NOTHING
from projects.history.rewind import IN_ONE_ENVIRONMENT, TYPES, Back, PastEvent
from projects.models import Flag, FlagEnvironment, Strategy

DETAILS = ("description", "type", "owner")
"""The members that no environment evaluates. ``Back`` knows all others."""

_MEMBERS = (
    "name", "project", "createdAt", "stale", "impressionData", "archived", "dependencies", *DETAILS
)  # fmt: skip

# The deletion of a parent, and that of an environment, are events of others that change the flag.
_EVENTS = """
SELECT e.id, e.type, e.environment, e.feature, e.before, e.after, e.earlier FROM audit_auditevent e
 WHERE e.feature = ANY(%(flags)s) AND e.id > %(event)s AND e.created_at > %(at)s AND e.type = ANY(%(types)s)
UNION ALL
SELECT e.id, e.type, e.environment, e.feature, e.before, e.after, e.earlier FROM audit_auditevent e
 WHERE e.type = ANY(%(others)s) AND e.id > %(event)s AND e.created_at > %(at)s
   AND (e.feature IS NULL OR e.feature <> ALL(%(flags)s))
   AND (e.earlier->'children' ?| %(flags)s OR e.earlier->'flags' ?| %(flags)s OR e.type = ANY(%(segments)s))
 ORDER BY id DESC
"""
_OTHERS = [E.FEATURE_DELETED.value, E.ENVIRONMENT_DELETED.value]
_SEGMENTS = [E.SEGMENT_UPDATED.value, E.SEGMENT_DELETED.value, E.PROJECT_DELETED.value]


def read_present_version(flag: Flag) -> Document:
    """The flag as it is stored. Four queries."""
    rows = FlagEnvironment.objects.filter(flag=flag).values_list("environment_id", "enabled", "variants")
    places: dict[str, Document] = {
        name: {"enabled": enabled, "variants": variants, "strategies": []} for name, enabled, variants in rows
    }
    strategies = list(Strategy.objects.filter(flag=flag).order_by("sort_order", "id"))
    for strategy, document in zip(strategies, read_strategy_documents(strategies), strict=True):
        place = places.setdefault(strategy.environment_id, {**NOTHING, "strategies": []})
        place["strategies"].append(document)
    return {
        **make_metadata_document(flag),
        "dependencies": read_dependency_documents(flag),
        "environments": [{"name": name, **places[name]} for name in sorted(places)],
    }


def make_seen_version(document: Document, environments: Iterable[str]) -> Document:
    """Returns the parts that a flag's version shares with its `GET`, which shows its project's environments."""
    places = {place["name"]: place for place in document["environments"]}
    return {
        **{member: document.get(member) for member in _MEMBERS},
        "environments": [
            {"name": name} | {key: places.get(name, NOTHING)[key] for key in NOTHING}
            for name in sorted(environments)
        ],
    }


def read_version(flag: Flag, *, event: int = 0, at: datetime | None = None) -> Document | None:
    """Returns the flag as it was after one of its events, or at a moment; None if there was no flag. Five queries."""
    back = FlagBack(read_present_version(flag), events := read_events_since([flag.name], event=event, at=at))
    for flag_event in events:
        back.undo(flag_event.event)
    return back.version()


class FlagEvent(NamedTuple):
    id: int
    event: PastEvent


def read_events_since(
    flags: Iterable[str], *, event: int = 0, at: datetime | None = None, segments: bool = False
) -> list[FlagEvent]:
    """Lists what has changed these flags after an event, or after a moment, newest first. One query.

    With ``segments``, changes of all segments are among them.
    """
    of_segments = _SEGMENTS if segments else []
    values: dict[str, Any] = {
        "flags": list(flags),
        "event": event,
        "at": at or datetime.min.replace(tzinfo=UTC),
        "types": TYPES,
        "others": [*_OTHERS, *of_segments],
        "segments": of_segments,
    }
    return [FlagEvent(pk, PastEvent.of_row(*row)) for pk, *row in fetch_rows(_EVENTS, values)]


class FlagBack:
    """A flag on the way back, by taking events back, the newest first. ``now`` is its present version."""

    def __init__(self, now: Document, events: Iterable[FlagEvent]) -> None:
        self.name = now["name"]
        self._rest = {key: now[key] for key in ("name", "createdAt")}
        self._details = {key: now.get(key) for key in DETAILS}
        places = {place["name"]: place for place in now["environments"]}
        names = dict.fromkeys(
            [*places, *sorted(_make_environments(flag_event.event for flag_event in events))]
        )
        # Flags are the same in all environments but for what is in ``environments``: one without any is asked for that.
        self._backs = {name: Back(name, [_make_definition(now, places.get(name))]) for name in (*names, "")}

    def undo(self, event: PastEvent) -> None:
        """Takes an event back. Before the flag was created, there may have been another one of that name."""
        if self._flag("") is None:
            return
        if event.type in IN_ONE_ENVIRONMENT and event.type != E.ENVIRONMENT_DELETED:
            if event.environment in self._backs:
                self._backs[event.environment].undo(event)
            return
        for back in self._backs.values():
            back.undo(event)
        if event.feature == self.name and isinstance(event.before, dict):
            self._details |= {key: event.before[key] for key in DETAILS if key in event.before}

    def version(self) -> Document | None:
        """The flag as it was, None if there was no flag."""
        flag = self._flag("")
        if flag is None:
            return None
        return {
            **self._rest,
            **self._details,
            "project": flag["project"],
            "stale": flag["stale"],
            "impressionData": flag["impression_data"],
            "archived": flag["archived"],
            "dependencies": flag["dependencies"],
            "environments": [
                {"name": name, **_make_environment(flag_there)}
                for name in sorted(self._backs)
                if name and (flag_there := self._flag(name)) is not None
            ],
        }

    def _flag(self, environment: str) -> FlagDefinition | None:
        return self._backs[environment].flags.get(self.name)


def _make_environments(events: Iterable[PastEvent]) -> Iterator[str]:
    """The environments that the events speak of."""
    for event in events:
        if event.environment is not None:
            yield event.environment
        if event.type == E.ENVIRONMENT_DELETED:
            yield event.before["name"]
        if event.type == E.FEATURE_REVERTED:
            yield from (place["name"] for place in event.before["environments"])


def _make_definition(now: Document, place: Document | None) -> FlagDefinition:
    settings: Any = place or NOTHING
    return {
        "name": now["name"],
        "project": now["project"],
        "enabled": settings["enabled"],
        "impression_data": now["impressionData"],
        "stale": now["stale"],
        "variants": settings["variants"],
        "strategies": [strategy.copy() for strategy in settings["strategies"]],
        "dependencies": now["dependencies"],
        "archived": now["archived"],
    }


def _make_environment(flag: FlagDefinition) -> Document:
    strategies = sorted(flag["strategies"], key=lambda strategy: (strategy["sortOrder"], strategy["id"]))
    # Copies: on the way further back, strategies change in place.
    return {
        "enabled": flag["enabled"],
        "variants": flag["variants"],
        "strategies": [dict(strategy) for strategy in strategies],
    }
