"""The audit log as a file for other systems, and how long events are kept."""

import logging
import os
import socket
import sys
import threading
from collections import Counter
from datetime import timedelta
from logging.handlers import SysLogHandler, WatchedFileHandler
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pgtrigger
from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef
from django.utils import timezone

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.record import AuditEvent, Event, record
from flagadmin.core.db.statements import fetch_row
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import MaintenanceMode
from groups.access import Caller
from integrations.deliveries.sender import read_settled_id
from integrations.models import Delivery, WrittenLog
from projects.history.serializers import make_event_record

log = logging.getLogger("flagadmin.integrations")

BATCH = 500  # events
PAUSE = 1.0  # seconds
CLAIM_SECONDS = 60
TIMEOUT = 10.0  # seconds, for each message to syslog
MAX_MESSAGE = 60_000  # bytes, the capacity of one datagram


def run(stop: threading.Event) -> None:
    """Writes the log until the event is set."""
    handler: logging.Handler | None = None
    while not stop.wait(PAUSE):
        try:
            handler = handler or make_handler(settings.AUDIT_LOG)
            while write_batch(handler) and not stop.is_set():
                continue
        except Exception:
            log.exception("The audit log cannot be written to %s.", settings.AUDIT_LOG)
            if handler is not None:
                handler.close()
                handler = None  # a failed connection does not recover
        finally:
            connection.close()


def make_handler(target: str) -> logging.Handler:
    """``target``: stdout, a path, or a URL of syslog. The handler raises its errors. Raises OSError."""
    handler: logging.Handler
    if target == "stdout":
        handler = logging.StreamHandler(sys.stdout)
    elif target.startswith("syslog"):
        handler = _make_syslog(target)
    else:
        _end_line(Path(target))
        handler = WatchedFileHandler(target, encoding="utf-8", delay=True)
    handler.handleError = _raise  # type: ignore[method-assign]
    return handler


def _end_line(path: Path) -> None:
    """Ends a truncated line, for example after a full disk, so that the next one does not continue it."""
    if path.is_file() and path.stat().st_size:
        with path.open("ab+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")


def _make_syslog(target: str) -> SysLogHandler:
    url = urlsplit(target)
    is_stream = url.scheme == "syslog+tcp"
    address = (url.hostname, url.port or (601 if is_stream else 514)) if url.hostname else url.path
    kind = socket.SOCK_STREAM if is_stream else socket.SOCK_DGRAM
    handler = SysLogHandler(address, socktype=kind)
    handler.ident, handler.append_nul = "flagadmin: ", False
    connected: socket.socket | None = getattr(handler, "socket", None)
    if connected is not None:
        connected.settimeout(TIMEOUT)
    return handler


def _raise(record: logging.LogRecord) -> None:
    raise  # noqa: PLE0704 - logging calls it where it handles an exception


def write_batch(handler: logging.Handler) -> bool:
    """Writes the next events. Returns whether there were any, unless another server was writing them."""
    settled_id = read_settled_id()
    claimed = _claim(settled_id)
    if claimed is None:
        return False
    events = AuditEvent.objects.filter(pk__gt=claimed, pk__lte=settled_id).order_by("pk")[:BATCH]
    last_id = settled_id
    try:
        for event in events:
            handler.emit(_make_record(_make_line(event, handler)))
            last_id = event.pk
    except BaseException:
        WrittenLog.objects.update(claimed_until=timezone.now())
        raise
    is_full = len(events) == BATCH
    WrittenLog.objects.update(written_id=last_id if is_full else settled_id, claimed_until=timezone.now())
    return is_full


def _claim(settled_id: int) -> int | None:
    """Claims the log. Returns how far it has been written; None if this server may not continue."""
    WrittenLog.objects.get_or_create(pk=1)
    row = fetch_row(
        "UPDATE integrations_writtenlog SET claimed_until = now() + make_interval(secs => %s)"
        " WHERE claimed_until <= now() AND written_id < %s RETURNING written_id",
        [CLAIM_SECONDS, settled_id],
    )
    return None if row is None else row[0]


def _make_line(event: AuditEvent, handler: logging.Handler) -> str:
    document = make_event_record(event)
    line = orjson.dumps(document)
    if isinstance(handler, SysLogHandler):
        if len(line) > MAX_MESSAGE:
            line = orjson.dumps(document | {"data": None, "preData": None, "isCut": True})
        if handler.socktype == socket.SOCK_STREAM:
            line += b"\n"
    return line.decode()


def _make_record(line: str) -> logging.LogRecord:
    return logging.LogRecord("audit", logging.INFO, "", 0, line, None, None)


MAX_REMOVED = 20_000  # events at a time
_ABOUT_ACCOUNTS = ("user-", "service-account-", "group-", "api-token-", "pat-", "public-signup-")
REMOVABLE = [kind.value for kind in E if kind.value.startswith(_ABOUT_ACCOUNTS)] + [
    E.FEATURE_FAVORITED,
    E.FEATURE_UNFAVORITED,
    E.PROJECT_FAVORITED,
    E.PROJECT_UNFAVORITED,
    E.FEATURES_EXPORTED,
    E.ADDON_CREATED,
    E.ADDON_UPDATED,
    E.ADDON_DELETED,
]


def prune() -> int:
    """Removes events older than FLAGADMIN_AUDIT_DAYS. Returns the number of removed events."""
    if not settings.AUDIT_DAYS:
        return 0
    try:
        removed = _remove()
    except MaintenanceMode:
        return 0
    if removed:
        log.info("Removed %s events that were older than %s days.", removed, settings.AUDIT_DAYS)
    return removed


@transactional
def _remove() -> int:
    """Removes events, and records an event with the number of each type."""
    oldest = timezone.now() - timedelta(days=settings.AUDIT_DAYS)
    events = AuditEvent.objects.filter(
        ~Exists(Delivery.objects.filter(event_id=OuterRef("pk"))),
        type__in=REMOVABLE,
        created_at__lt=oldest,
        pk__lte=_find_handed_on_id(),
    )
    rows = list(events.order_by("pk").values_list("pk", "type")[:MAX_REMOVED])
    if not rows:
        return 0
    with pgtrigger.ignore("audit.AuditEvent:append_only"):
        AuditEvent.objects.filter(pk__in=[pk for pk, _ in rows]).delete()
    counts = Counter(kind for _, kind in rows)
    after = {"olderThan": oldest.isoformat(), "removed": dict(sorted(counts.items()))}
    record(Event(type=E.EVENTS_PRUNED, subject=f"{len(rows):,}", after=after), actor=Caller.system())
    return len(rows)


def _find_handed_on_id() -> int:
    """The id up to which no event remains to be relayed or written elsewhere."""
    if not settings.AUDIT_LOG:
        return read_settled_id()
    written = WrittenLog.objects.first()
    return written.written_id if written else 0
