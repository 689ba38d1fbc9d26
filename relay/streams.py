"""Streams: told what changed, or that something did, and ended when their token is no longer what it was."""

import hashlib
import logging
import random
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any
from weakref import WeakKeyDictionary

import orjson

from flagadmin.core.errors import TooManyRequests
from flagadmin.core.server.open_files import count_files_for_streams
from flagadmin.core.server.paced_writing import PacedWriter
from playground.engine.context import Context
from relay.copy import Copy
from relay.http import Request
from relay.responses import prepare
from relay.tokens import Token, Tokens
from sdk.evaluation.dates_reached import find_dates_reached
from sdk.evaluation.prepared import Prepared

log = logging.getLogger("flagadmin.relay")

MAX_STREAMS = 20_000
KEEP_ALIVE = 15.0  # seconds
COMMENT = b":\n\n"
RECONNECT_SPREAD = (500, 2_500)  # milliseconds until the clients of a relay that stops connect again
CLOCK = 1.0  # seconds between two looks at flags that compare the current time
HEADERS = [("content-type", "text/event-stream"), ("cache-control", "no-store"), ("x-accel-buffering", "no")]
REFETCH = b'event: message\nid: %d\ndata: {"type":"refetchEvaluation"}\n\n'

Events = AsyncGenerator[Sequence[bytes], None]
"""Events in parts, as streams share what is large of them."""


class Streams:
    def __init__(self, tokens: Tokens, copy: Copy) -> None:
        self._tokens, self._copy = tokens, copy
        self.open = 0
        self._is_stopping = False
        self._limit = count_files_for_streams(MAX_STREAMS)
        self._versions: WeakKeyDictionary[Prepared, tuple[int, int]] = WeakKeyDictionary()

    def check_room(self) -> None:
        """Raises TooManyRequests."""
        if self.open >= self._limit:
            raise TooManyRequests("Too many streams are open.", headers={"Retry-After": "30"})

    async def serve(self, events: Events, scope: Any, protocol: Any, headers: list[tuple[str, str]]) -> None:
        """Sends events until they end or the client goes.

        One that reads slowly misses nothing: its next event tells all that has changed meanwhile.
        """
        self.open += 1
        writer = PacedWriter(protocol.response_stream(200, HEADERS + headers), scope.client)
        try:
            async with aclosing(events):
                async for parts in events:
                    await writer.write(parts)
                    del parts  # may be large, and the next ones may be hours away
            if self._is_stopping:
                await writer.give(b"retry: %d\n\n" % random.randint(*RECONNECT_SPREAD))
        except Exception as error:  # noqa: BLE001 - Granian's, when the client has gone
            log.debug("A stream ended: %s", error)
        finally:
            self.open -= 1

    def end(self) -> None:
        """Ends all streams: the relay stops."""
        self._is_stopping = True
        self._copy.tell_waiting()

    def _may_go_on(self, token: Token) -> bool:
        return not self._is_stopping and self._tokens.get(token.secret) == token

    async def tell_changes(self, token: Token, version: int | None) -> Events:
        """Yields for SDKs everything, or what has changed since the version."""
        kind = b"unleash-connected"
        while self._may_go_on(token):
            changes = self._copy.changes(token.scope)
            if changes is None:
                return
            if changes.version != version or kind == b"unleash-connected":
                since, version = version, changes.version
                yield [b"event: %b\nid: %d\ndata: " % (kind, version), changes.events(since), b"\n\n"]
                kind = b"unleash-updated"
            elif not await self._copy.wait_for_change(KEEP_ALIVE):
                yield [COMMENT]

    async def tell_refetch(self, token: Token, version: int | None) -> Events:
        """Tells providers of OpenFeature to ask again, unless the version is still the same."""
        silent_since = time.monotonic()
        while self._may_go_on(token):
            prepared = await prepare(await self._copy.find(token))
            latest = self._read_version(prepared, token)
            if latest != version:
                version = latest
                yield [REFETCH % version]
            elif time.monotonic() - silent_since >= KEEP_ALIVE:
                yield [COMMENT]
            else:
                await self._copy.wait_for_change(KEEP_ALIVE if prepared.is_timeless else CLOCK)
                continue
            silent_since = time.monotonic()

    def _read_version(self, prepared: Prepared, token: Token) -> int:
        """Hashes what decides answers besides contexts: the flags, and which dates have been reached."""
        second = 0 if prepared.is_timeless else int(time.time())
        known = self._versions.get(prepared)
        if known is None or known[0] != second:
            context = Context({"environment": token.environment}).at(datetime.now(UTC))
            state = orjson.dumps([prepared.state, find_dates_reached(prepared.snapshot, context)])
            digest = hashlib.blake2b(state, digest_size=4).digest()
            known = self._versions[prepared] = second, int.from_bytes(digest, "big")
        return known[1]


def read_version(request: Request) -> int | None:
    """The version that the client of a stream has."""
    known = request.headers.get("last-event-id", "").strip()
    return int(known) if known.isdecimal() and len(known) < 17 else None
