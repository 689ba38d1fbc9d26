"""Keeps lists of segments in step with their URLs. Runs in ``serve``, on one server at a time, in its own thread.

A list changes by the same action as in the API, with the rights that the user who set the URL has now. So it needs
change requests where the API does; such a list is not changed, and its page says so.

Sets and removes the URL that the list of a segment is kept in step with.
"""

import logging
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import requests
from cryptography.fernet import InvalidToken
from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from flagadmin import __version__
from flagadmin.client.server import find_cause
from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.change_checks import Refusal
from flagadmin.core.change_checks.comments import MAX_LENGTH
from flagadmin.core.change_options import changing
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import Lock, change_once, hold_if_free, transactional
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import Expected, check_expected, hash_document
from flagadmin.core.errors import (
    AppError,
    Conflict,
    InvalidOperation,
    NoAccess,
    NotFound,
    ValidationError,
    check_problems,
)
from flagadmin.core.http.outside import CONNECT_SECONDS, Refused, checked_session, read_bounded
from flagadmin.core.http.responses import iso
from flagadmin.core.installation.state import is_in_maintenance
from groups.access import Caller, Permission
from projects.models import ListSource, Segment
from projects.segments.actions import access_segment_for_update, update_list
from projects.segments.lists import (
    BODY_LIMIT,
    OPERATOR,
    SHOWN,
    SentList,
    find_list,
    may_be_list,
    pluralize_values,
)
from projects.segments.rules import read_answer, show_url, source_problems

log = logging.getLogger("flagadmin.runtime")
SECONDS = 20.0
"""For one list."""
PAUSE = 5.0
UNCHANGED = "Nothing to change."


def run(stop: threading.Event) -> None:
    """Fetches lists until the event is set."""
    while not stop.wait(PAUSE):
        try:
            if _find_due().exists() and not is_in_maintenance():
                with hold_if_free(Lock.LISTS) as is_free:
                    if is_free:
                        fetch_due(stop)
        except Exception:
            log.exception("Lists of segments cannot be fetched.")
        finally:
            connection.close()


def _find_due() -> QuerySet[ListSource]:
    return ListSource.objects.filter(due_at__lte=timezone.now()).order_by("due_at")


def fetch_due(stop: threading.Event) -> None:
    """Fetches the lists that are due, the longest overdue first."""
    for key in list(_find_due().values_list("pk", flat=True)):
        source = ListSource.objects.select_related("segment", "set_by").filter(pk=key).first()
        if source and not stop.is_set():
            fetch(source)


def fetch(source: ListSource) -> None:
    """Fetches one list and stores what came of it, unless the source has been set anew meanwhile."""
    now = timezone.now()
    row = ListSource.objects.filter(pk=source.pk, set_at=source.set_at)
    # First: a list that ends the process must not be fetched again every minute.
    if not row.update(due_at=now + timedelta(minutes=source.minutes)):
        return
    problem = ""
    try:
        known = hash_document(find_list(source.segment.constraints)) == source.fetched_hash
        answer = _download(source, source.etag if known else "")
        result = UNCHANGED if answer is None else _apply(source, *answer)
    except Refusal as refusal:  # its message may name flags that readers of the page cannot see
        result, problem = "", f"{refusal.title}: change the list on its page, which offers what to do."
    except AppError as error:
        result, problem = "", "; ".join(map(str, error.details[:SHOWN])) or error.message
    _store(source, checked_at=now, result=result, problem=problem.replace("\0", ""))


@transactional
def _store(source: ListSource, **came: Any) -> None:
    """Also records an event for the first fetch that failed after one that succeeded."""
    row = ListSource.objects.filter(pk=source.pk, set_at=source.set_at)
    if row.update(**came) and came["problem"] and not source.problem:
        segment, told = source.segment, {"id": source.pk, "url": show_url(source), "problem": came["problem"]}
        kind, project = EventType.SEGMENT_LIST_NOT_FETCHED, segment.project_id
        record(Event(type=kind, project=project, subject=segment.name, after=told), actor=Caller.system())


def _download(source: ListSource, etag: str) -> tuple[bytes, str] | None:
    """The body and its ETag; None if the server says that it has not changed. Raises Conflict."""
    headers = {"User-Agent": f"flagadmin/{__version__}"} | ({"If-None-Match": etag} if etag else {})
    until = time.monotonic() + SECONDS
    try:
        with (
            checked_session() as session,
            session.get(
                source.url, headers=headers, timeout=CONNECT_SECONDS, stream=True, allow_redirects=False
            ) as answer,
        ):
            if answer.status_code == 304 and etag:
                return None
            if answer.is_redirect:
                raise Conflict("The server redirects to another address: enter that one.")
            if answer.status_code != 200:
                raise Conflict(f"The server answered with status {answer.status_code}.")
            tag = answer.headers.get("ETag", "").replace("\0", "")
            return read_bounded(answer, max_bytes=BODY_LIMIT, until=until), tag
    except InvalidToken:
        raise Conflict("The URL was encrypted with another SECRET_KEY: enter it again.") from None
    except Refused as error:
        raise Conflict(str(error)) from None
    except requests.RequestException as error:
        query = urlsplit(source.url).query
        cause = find_cause(error)
        raise Conflict(cause.replace(query, "…") if query else cause) from None


def _apply(source: ListSource, body: bytes, etag: str) -> str:
    """Returns what has changed. Raises the errors of changing the list, and Conflict."""
    constraints = source.segment.constraints
    sent = read_answer(body, source, constraints[0]["contextName"] if constraints else "")
    user = source.set_by
    if user is None:
        raise Conflict(f"{source.set_by_name}, who set the URL, has been deleted.")
    caller = Caller(rights=Caller(user=user).rights)  # flagadmin, which may do what the user may do now
    comment = f"Fetched from {urlsplit(source.url).netloc}, as {source.set_by_name} set it up"[:MAX_LENGTH]
    try:
        with changing(comment=comment):
            return _replace(source, sent, etag[:500], caller)
    except (NoAccess, NotFound):
        raise Conflict(f"{source.set_by_name}, who set the URL, may no longer change this segment.") from None


@transactional
def _replace(source: ListSource, sent: SentList, etag: str, caller: Caller) -> str:
    segment = access_segment_for_update(caller, source.pk, Permission.UPDATE_SEGMENT)
    row = ListSource.objects.filter(pk=source.pk, set_at=source.set_at)
    if not row.exists():
        return UNCHANGED
    before = len(find_list(segment.constraints))
    if sent.values and 2 * len(sent.values) < before:
        counts = f"{pluralize_values(len(sent.values))} in place of {before:,}, less than half"
        raise Conflict(f"The list has {counts}. If that is right, change the list on its page.")
    change_once()
    changed, difference = update_list(segment.pk, sent, mode="replace", caller=caller)
    row.update(etag=etag, fetched_hash=hash_document(find_list(changed.constraints)))
    return f"+ {difference.added:,}, − {difference.removed:,}" if difference else UNCHANGED


def find_source(segment_id: int) -> ListSource | None:
    return ListSource.objects.filter(pk=segment_id).first()


def source_document(source: ListSource | None) -> Document:
    """What is set, for the API, events and edit conflicts; all members are null without a source."""
    return {
        "url": source and show_url(source),
        "format": source and source.format,
        "column": source and source.column,
        "intervalMinutes": source and source.minutes,
        "setBy": source and source.set_by_name,
        "setAt": source and iso(source.set_at),
    }


@transactional
def set_source(
    segment_id: int, values: Mapping[str, Any] | None, *, expected: Expected = None, caller: Caller
) -> None:
    """``values``: url, format, column, minutes; None removes the source. A URL as it is shown keeps its query.

    Lists are fetched with the rights of the caller. Raises NotFound, NoAccess, EditConflict, ValidationError, and
    InvalidOperation for tokens that belong to nobody.
    """
    segment = access_segment_for_update(caller, segment_id, Permission.UPDATE_SEGMENT)
    stored = find_source(segment_id)
    before = source_document(stored)
    check_expected(expected, before)
    if values is None:
        ListSource.objects.filter(pk=segment_id).delete()
        if stored:
            _record(segment, before, source_document(None), caller)
        return
    if caller.user is None:
        raise InvalidOperation("Only people and service accounts can set the source of a list.")
    if stored and before["url"] and values["url"] == before["url"]:
        values = {**values, "url": stored.url}
    check_problems(source_problems(values))
    if not may_be_list(segment.constraints):
        raise ValidationError.at("constraints[0].operator", f"must be {OPERATOR} for a list")
    now = timezone.now()
    source = ListSource(
        segment=segment, **values, set_by=caller.user, set_by_name=caller.name, set_at=now, due_at=now
    )
    source.save()
    _record(segment, before, source_document(source), caller)


@transactional
def fetch_soon(segment_id: int, *, caller: Caller) -> ListSource:
    """Makes the list due, so that it is fetched within seconds. Raises NotFound, also without a source; NoAccess."""
    access_segment_for_update(caller, segment_id, Permission.UPDATE_SEGMENT)
    source = get_or_404(ListSource.objects, "The list of this segment has no source.", pk=segment_id)
    source.due_at = timezone.now()
    source.save(update_fields=["due_at"])
    return source


def _record(segment: Segment, before: Document, after: Document, caller: Caller) -> None:
    record(
        Event(
            type=EventType.SEGMENT_LIST_SOURCE_UPDATED,
            project=segment.project_id,
            subject=segment.name,
            before=before,
            after={"id": segment.pk, **after},
        ),
        actor=caller,
    )
