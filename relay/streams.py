"""Streams of SDKs: told what changed, ended when their token is no longer what it was."""

import asyncio
import logging
from typing import Any

from flagadmin.core.errors import TooManyRequests
from relay.copy import Copy
from relay.http import Request, respond_error
from relay.tokens import Token, Tokens

log = logging.getLogger("flagadmin.relay")

MAX_STREAMS = 20_000
KEEP_ALIVE = 15.0  # seconds
HEADERS = [("content-type", "text/event-stream"), ("cache-control", "no-store"), ("x-accel-buffering", "no")]


class Streams:
    def __init__(self, tokens: Tokens, copy: Copy) -> None:
        self._tokens, self._copy = tokens, copy
        self._open = 0

    async def serve(self, token: Token, request: Request, protocol: Any) -> None:
        """Sends events until the client goes, or its token changes."""
        if self._open >= MAX_STREAMS:
            error = TooManyRequests("Too many streams are open.", headers={"Retry-After": "30"})
            response = respond_error(request.path, error)
            protocol.response_bytes(response.status, response.headers, response.body)
            return
        known = request.headers.get("last-event-id", "").strip()
        self._open += 1
        transport = protocol.response_stream(200, HEADERS)
        try:
            await self._send(token, int(known) if known.isdecimal() and len(known) < 17 else None, transport)
        except Exception as error:  # noqa: BLE001 - Granian's, when the client has gone
            log.debug("A stream ended: %s", error)
        finally:
            self._open -= 1

    async def _send(self, token: Token, version: int | None, transport: Any) -> None:
        kind = b"unleash-connected"
        while self._tokens.get(token.secret) == token:
            changes = self._copy.changes(token.scope)
            if changes is None:
                return
            if changes.version != version or kind == b"unleash-connected":
                since, version = version, changes.version
                event = b"event: %b\nid: %d\ndata: %b\n\n" % (kind, version, changes.events(since))
                await transport.send_bytes(event)
                kind = b"unleash-updated"
            elif not await self._has_changed():
                await transport.send_bytes(b":\n\n")

    async def _has_changed(self) -> bool:
        async def wait() -> None:
            async with self._copy.changed:
                await self._copy.changed.wait()

        try:
            await asyncio.wait_for(wait(), KEEP_ALIVE)
        except TimeoutError:
            return False
        return True
