"""Records audit events in the same transaction as the change that they describe."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol, cast

import orjson
from django.db import connection, transaction

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.change_checks.comments import check_comment
from flagadmin.core.change_options import get_comment
from flagadmin.core.db import commits
from flagadmin.core.db.statements import copy_rows, fetch_row
from flagadmin.core.db.transactions import Action, find_action
from flagadmin.core.http.logs import request_id
from flagadmin.core.installation.state import check_writable

MOMENT = "flagadmin.moment"
"""A transaction-local setting in which the database keeps the time of the transaction's events."""


def read_transaction_time() -> datetime:
    """The time of all events of this transaction, for rows that store it too. Take the locks first."""
    return cast("datetime", fetch_row("SELECT audit_moment()")[0])


class Actor(Protocol):
    """The author of a change: a user, a service account, an API token or the system."""

    @property
    def id(self) -> int | None: ...
    @property
    def name(self) -> str: ...


class OfProject(Protocol):
    """A flag of a project."""

    name: Any
    project_id: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """``keeps_comment``: whether readers of the event may read the comment on the change."""

    type: EventType
    project: str | None = None
    environment: str | None = None
    feature: str | None = None
    subject: str | None = None
    before: Any = None
    after: Any = None
    earlier: Any = None
    keeps_comment: bool = True

    @classmethod
    def of_flag(
        cls, kind: EventType, flag: "OfProject", environment: str | None = None, **members: Any
    ) -> "Event":
        return cls(type=kind, project=flag.project_id, environment=environment, feature=flag.name, **members)


def record(event: Event, *, actor: Actor) -> None:
    """Records one event. ``before`` and ``after`` are JSON documents and must not contain secrets."""
    record_all([event], actor=actor)


def record_change(event: Event, *, actor: Actor) -> None:
    """Records the event, unless ``before`` and ``after`` are equal."""
    if event.after != event.before:
        record(event, actor=actor)


@contextmanager
def recording_together() -> Iterator[None]:
    """Writes the events recorded inside at its end, in order and in few statements. Writes none if the context raises.

    Only within an action. Does not affect `copy_all` and `record_selected`, which write at once.
    """
    action = find_action()
    if action is None:
        action = Action()
    outer, action.events = action.events, []
    try:
        yield
        gathered = action.events
    finally:
        action.events = outer
    for actor, events in groupby(gathered, key=itemgetter(0)):
        record_all((event for _, event in events), actor=actor)


def record_all(events: Iterable[Event], *, actor: Actor) -> None:
    """Records many events in few statements, in the given order."""
    events, action = list(events), find_action()
    if action is not None and action.events is not None:
        action.events += [(actor, event) for event in events]
        return
    _check_change({event.type for event in events})
    check_comment(events)
    transaction.on_commit(commits.mark)
    identifier, comment = request_id.get(), get_comment()
    AuditEvent.objects.bulk_create(
        [
            AuditEvent(
                type=event.type.value,
                actor_id=actor.id,
                actor_name=actor.name,
                project=event.project,
                environment=event.environment,
                feature=event.feature,
                subject=event.subject,
                before=event.before,
                after=event.after,
                earlier=event.earlier,
                request_id=identifier,
                comment=comment if event.keeps_comment else "",
            )
            for event in events
        ],
        batch_size=2000,
    )


def copy_all(events: Iterable[Event], *, actor: Actor) -> int:
    """Records any number of events with one COPY, in the given order. Returns their number.

    `before` and `after` may also be JSON that is already encoded (bytes). Does not check whether a comment is
    required: call `check_comment` before writing.
    """
    _check_change(())
    transaction.on_commit(commits.mark)
    identifier, comment = request_id.get(), get_comment()
    return copy_rows(
        AuditEvent._meta.db_table,
        _COPIED,
        (
            (
                event.type.value,
                actor.id,
                actor.name,
                event.project,
                event.environment,
                event.feature,
                event.subject,
                _format_json(event.before),
                _format_json(event.after),
                _format_json(event.earlier),
                identifier,
                comment,
            )
            for event in events
        ),
    )


def _check_change(types: Iterable[EventType]) -> None:
    """Raises MaintenanceMode, unless all types are allowed during maintenance."""
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError(
            "An audit event belongs to the transaction of its change."
        )
    if not types or not all(kind.in_maintenance for kind in types):
        check_writable()


_COPIED = (
    "type",
    "actor_id",
    "actor_name",
    "project",
    "environment",
    "feature",
    "subject",
    "before",
    "after",
    "earlier",
    "request_id",
    "comment",
)


def _format_json(document: Any) -> str | None:
    if document is None:
        return None
    return (document if isinstance(document, bytes) else orjson.dumps(document)).decode()


def record_selected(kind: EventType, select: str, params: Sequence[Any], *, actor: Actor) -> int:
    """Records one event for each row of the query ``select``, in its order. Returns their number.

    The rows are copied within the database. ``select`` returns project, feature, before and earlier (jsonb), in
    this order. It must not contain user input.
    """
    _check_change([kind])
    own = [kind.value, actor.id, actor.name, request_id.get(), get_comment()]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_auditevent "  # noqa: S608 - all values are passed as parameters
            "(type, actor_id, actor_name, request_id, comment, project, feature, before, earlier) "
            f"SELECT %s, %s::bigint, %s, %s, %s, selected.* FROM ({select}) AS selected",
            [*own, *params],
        )
        return cursor.rowcount
