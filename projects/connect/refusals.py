"""Remembers refused SDK requests for a while, so that people who connect an SDK see the reason.

A refusal is noted in memory, which costs no time; the worker's loop stores them once a second. Memory, rows and
statements are bounded, because anyone may send wrong tokens.
"""

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from django.db import connection
from django.utils import timezone

from flagadmin.core.db import outages
from flagadmin.core.db.standby import committed_locally
from flagadmin.core.db.statements import execute
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import AppError
from flagadmin.core.http.request_metrics import get_client_address
from groups.tokens import parse_scope

log = logging.getLogger("flagadmin.connect")

KEPT = timedelta(minutes=15)
MAX_ROWS = 200
MAX_NOTED = 20  # different ones in a second, of a worker
PAUSE = 1.0  # seconds
MAX_LENGTH = 100
MIN_SECRET = 20  # of a shorter one, four characters would reveal too much

_WRITE = """
INSERT INTO projects_refusedrequest AS known
       (fingerprint, seen_at, message, project, environment, ending, sdk, application, address)
SELECT * FROM unnest(%s::text[], %s::timestamptz[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
                     %s::text[], %s::text[]) ORDER BY 1
ON CONFLICT (fingerprint) DO UPDATE SET seen_at = greatest(known.seen_at, excluded.seen_at)
"""
_FORGET = """
DELETE FROM projects_refusedrequest WHERE fingerprint IN (
       SELECT fingerprint FROM projects_refusedrequest
        WHERE seen_at < %s OR seen_at < (SELECT seen_at FROM projects_refusedrequest
                                          ORDER BY seen_at DESC OFFSET %s LIMIT 1)
        ORDER BY 1 FOR UPDATE SKIP LOCKED)
"""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that was refused: the columns of RefusedRequest, in their order."""

    message: str
    project: str
    environment: str
    ending: str
    sdk: str
    application: str
    address: str

    @property
    def fingerprint(self) -> str:
        parts = (
            self.message,
            self.project,
            self.environment,
            self.ending,
            self.sdk,
            self.application,
            self.address,
        )
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


class Refusals:
    """The refusals of a worker that are not stored yet. Thread-safe."""

    def __init__(self) -> None:
        self._noted: dict[Refusal, datetime] = {}
        self._lock = Lock()

    def note(self, request: Any, secret: str | None, error: AppError) -> None:
        """Notes the contents of an SDK's request, and the reason for its refusal."""
        refusal = describe(request, secret, error)
        with self._lock:
            if refusal in self._noted or len(self._noted) < MAX_NOTED:
                self._noted[refusal] = timezone.now()

    def flush(self) -> None:
        """Stores the notes, and deletes old or excess rows. During an outage of the database, they are lost."""
        with self._lock:
            noted, self._noted = self._noted, {}
        if noted:
            with suppress(*outages.UNREACHABLE), committed_locally():
                _store(noted)
                _forget()

    async def run(self) -> None:
        """Stores the notes once a second."""
        while True:
            await asyncio.sleep(PAUSE)
            if self._noted:
                await asyncio.to_thread(self._flush_and_leave)

    def _flush_and_leave(self) -> None:
        try:
            self.flush()
        finally:
            connection.close()


def describe(request: Any, secret: str | None, error: AppError) -> Refusal:
    """Describes the request. ``secret`` was sent as a token."""
    secret = secret or ""
    headers = request.headers
    sdk = headers.get("Unleash-Sdk") or headers.get("X-Unleash-Sdk") or headers.get("User-Agent", "")
    application = headers.get("Unleash-Appname") or headers.get("X-Unleash-Appname", "")
    try:
        project, environment = parse_scope(secret)
    except ValueError:
        project = environment = ""
    ending = secret[-4:] if len(secret) >= MIN_SECRET else ""
    texts = (error.message, project, environment, ending, sdk, application, get_client_address(request))
    return Refusal(*map(_readable, texts))


def _readable(text: str) -> str:
    return "".join(filter(str.isprintable, text[:MAX_LENGTH]))


@transactional
def _store(noted: dict[Refusal, datetime]) -> None:
    rows: Sequence[tuple[Any, ...]] = [
        (refusal.fingerprint, at, refusal.message, refusal.project, refusal.environment, refusal.ending,
         refusal.sdk, refusal.application, refusal.address)
        for refusal, at in noted.items()
    ]  # fmt: skip
    execute(_WRITE, [list(column) for column in zip(*rows, strict=True)])


@transactional
def _forget() -> None:
    execute(_FORGET, [timezone.now() - KEPT, MAX_ROWS - 1])


refusals = Refusals()
