"""Writes the audit log to where FLAGADMIN_AUDIT_LOG says: one JSON document a line, each event at least once.

Events are written in the order of their ids, as soon as no earlier one can still appear. Every server may write; one
claims the log for a minute. If it is killed, another one goes on then, and may repeat what the first one wrote: lines
have the id of their event.
"""

import logging
import os
import socket
import sys
import threading
from logging.handlers import SysLogHandler, WatchedFileHandler
from pathlib import Path
from urllib.parse import urlsplit

import orjson
from django.conf import settings
from django.db import connection
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.statements import fetch_row
from integrations.deliveries.outbox import read_settled_id
from integrations.models import WrittenLog
from projects.history.serializers import make_event_record

log = logging.getLogger("flagadmin.integrations")

BATCH = 500  # events
PAUSE = 1.0  # seconds
CLAIM_SECONDS = 60
TIMEOUT = 10.0  # seconds, for each message to syslog
MAX_MESSAGE = 60_000  # bytes: what one datagram holds


def run(stop: threading.Event) -> None:
    """Until the event is set."""
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
                handler = None  # a connection that failed stays so
        finally:
            connection.close()


def make_handler(target: str) -> logging.Handler:
    """``target``: stdout, a path, or a URL of syslog. The handler raises what goes wrong. Raises OSError."""
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
    """Ends a line that was cut, as by a full disk: the next one would be part of it."""
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
    """Whether there was something to write, and no other server was at it."""
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
    """Claims the log: returns how far it has been written, if this server may go on."""
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
