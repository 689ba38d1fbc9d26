"""Server-sent events: the responses of a worker or a relay that stay open, independent of their content.

The request is answered first, so that it can be refused like any other. If the answer has a stream, it becomes the
beginning of the stream. All methods run in the event loop and hold no thread. Knows no framework.
"""

import asyncio
import random
import resource
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from prometheus_client import Counter

from flagadmin.core.errors import TooManyRequests
from flagadmin.core.server.loop_routes import StreamRequest
from flagadmin.core.server.slow_clients import GONE, PacedWriter

CONTENT_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # nginx passes events on at once
# A comment. The Python SDK abandons a connection that is silent for 30 s.
KEEP_ALIVE = b":\n\n"
KEEP_ALIVE_SECONDS = 25
# Milliseconds before clients reconnect after a worker stops (spread, so that they do not come at once) or otherwise.
RECONNECT_SPREAD = (500, 2_500)
RECONNECT = 2_000
RETRY_AFTER = 30  # seconds, for clients that are refused

EVENTS = Counter("flagadmin_stream_events_total", "Events sent to streams.")


def make_event(name: str, data: bytes, *, identifier: object = None) -> bytes:
    """An event. ``data`` must be one line."""
    return b"".join(make_event_parts(name, [data], identifier=identifier))


def make_event_parts(name: str, data: Iterable[bytes], *, identifier: object = None) -> Iterator[bytes]:
    """An event whose data is joined only while it is sent. Not a generator, which Django would close before that."""
    numbered = b"" if identifier is None else b"id: %b\n" % str(identifier).encode()
    return chain([b"event: %b\n%bdata: " % (name.encode(), numbered)], data, [b"\n\n"])


def retry(milliseconds: int) -> bytes:
    """Tells the client how long to wait before it connects again."""
    return b"retry: %d\n\n" % milliseconds


class EventStream:
    """One client's open response."""

    __slots__ = ("_ended", "_request", "_sending", "_writer", "when_read")

    def __init__(self, request: StreamRequest) -> None:
        self._request = request
        self._writer: PacedWriter | None = None
        self._sending: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.when_read: Callable[[], object] = lambda: None
        """Called when the stream is no longer busy."""

    @property
    def is_open(self) -> bool:
        return not self._ended.done()

    @property
    def is_busy(self) -> bool:
        """Whether the client still has too much unread data to be sent more."""
        return self._sending is not None

    async def send(self, *parts: bytes) -> None:
        """Sends an event in parts, which streams may share. Never waits for the client: the stream is busy until the
        client has read enough.
        """
        assert not self.is_busy
        if self.is_open:
            if parts[0] is not KEEP_ALIVE:
                EVENTS.inc()
            assert self._writer is not None
            if not self._writer.has_room(sum(map(len, parts))):
                self._send_as_read(parts)
            else:
                try:
                    await self._writer.give(b"".join(parts))
                except GONE:
                    self.end()

    def _send_as_read(self, parts: Iterable[bytes]) -> None:
        self._sending = asyncio.ensure_future(self._give_as_read(parts))

    async def _give_as_read(self, parts: Iterable[bytes]) -> None:
        assert self._writer is not None
        try:
            await self._writer.write(parts)
        except (TimeoutError, *GONE):
            self.end()
        else:
            self._sending = None
            if self.is_open:
                self.when_read()

    def end(self, farewell: bytes = b"") -> None:
        if self.is_open:
            self._ended.set_result(
                b"" if self.is_busy else farewell
            )  # so that no other event interrupts this one

    async def begin(self) -> Any | None:
        """Begins the answer. Returns the ``stream`` of its response; None if the answer is already complete.

        A separate function, so that no part of the answer stays in memory while the response is open.
        """
        ready, response = await self._request.ask()
        subscription = getattr(response, "stream", None)
        if subscription is None:
            self._request.send(ready)
            return None
        headers = [header for header in ready.headers if header[0].lower() != "content-length"]
        transport = self._request.protocol.response_stream(ready.status, headers)
        self._writer = PacedWriter(transport, self._request.scope.client)
        EVENTS.inc()
        self._send_as_read(chain([retry(RECONNECT)], response))
        return subscription

    async def wait_until_ended(self) -> None:
        disconnect = asyncio.ensure_future(_wait_for_disconnect(self._request.protocol, self.end))
        try:
            farewell = await self._ended
            if farewell and self._writer:
                await self._writer.give(farewell)
        except GONE:
            pass
        finally:
            self.end()
            disconnect.cancel()
            if self._sending:
                self._sending.cancel()
            self._writer = None


class EventStreams:
    """The open streams of a worker or a relay, at most ``find_limit()``."""

    def __init__(self, find_limit: Callable[[], int]) -> None:
        self._find_limit = find_limit
        # One bucket is kept alive each second.
        self._buckets: list[set[EventStream]] = [set() for _ in range(KEEP_ALIVE_SECONDS)]
        self._draining: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def check_room(self) -> None:
        """Raises TooManyRequests. May be called in any thread."""
        if len(self) >= count_files_for_streams(self._find_limit()):
            raise TooManyRequests(
                f"{len(self):,} streams are open here. Poll instead, or try again later.",
                headers={"Retry-After": str(RETRY_AFTER)},
            )

    async def serve(
        self, request: StreamRequest, opened: Callable[[Any, EventStream], Callable[[], object]]
    ) -> None:
        """Sends the answer, and keeps the response open if it has a ``stream``.

        Calls ``opened(response.stream, stream)`` when the client has read most of the answer. ``opened`` may then
        send to the stream and replace ``when_read``; the function that it returns is called at the end.
        """
        stream = EventStream(request)
        subscription = await stream.begin()
        if subscription is None:
            return
        closed: list[Callable[[], object]] = []
        stream.when_read = lambda: closed.append(opened(subscription, stream))
        bucket = min(self._buckets, key=len)
        bucket.add(stream)
        self._drain_on(request.stopping)
        try:
            await stream.wait_until_ended()
        finally:
            bucket.discard(stream)
            for close in closed:
                close()

    async def keep_alive(self) -> None:
        """A task of the event loop that sends each stream a comment every KEEP_ALIVE_SECONDS, unless it is busy."""
        while True:
            for bucket in self._buckets:
                await asyncio.sleep(1)
                for stream in list(bucket):
                    if not stream.is_busy:
                        await stream.send(KEEP_ALIVE)

    def _drain_on(self, stopping: asyncio.Event) -> None:
        if self._draining is None or self._draining.done():
            self._draining = asyncio.ensure_future(self._drain(stopping))

    async def _drain(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        for bucket in self._buckets:
            for stream in list(bucket):
                stream.end(retry(random.randint(*RECONNECT_SPREAD)))


async def _wait_for_disconnect(protocol: Any, end: Callable[[], object]) -> None:
    await protocol.client_disconnect()
    end()


OTHERS = 1_024  # files of a worker besides streams: other connections, database, files


def raise_limit(wanted: int) -> None:
    """Raises this process's soft limit to ``wanted``, or as far as allowed. Its workers inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))


def count_files_for_streams(wanted: int) -> int:
    """How many of the wanted streams fit into this process's limit on open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(0, min(wanted, soft - OTHERS))
