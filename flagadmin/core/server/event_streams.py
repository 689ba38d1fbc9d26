"""Server-sent events: the responses of this worker that stay open, whatever they tell.

Django answers first, so that a request is refused as any other is; if it gives out a stream, its answer is the
beginning of it. All methods are called in the worker's event loop, and hold no thread.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any

from django.conf import settings
from prometheus_client import Counter, Gauge

from flagadmin.core.errors import TooManyRequests
from flagadmin.core.metrics.processes import process_name
from flagadmin.core.metrics.sampling import sampled
from flagadmin.core.server.loop_routes import StreamRequest
from flagadmin.core.server.open_files import left_for_streams
from flagadmin.core.server.sockets import end_slow_readers

CONTENT_TYPE = "text/event-stream"
# A comment. The Python SDK gives a connection up that is silent for 30 s.
KEEP_ALIVE = b":\n\n"
KEEP_ALIVE_SECONDS = 25
# Milliseconds: when the clients of a worker that stops connect again, not all at once, and after other ends.
RECONNECT_SPREAD = (500, 2_500)
RECONNECT = 2_000
# What a client has not read stays in memory. Beside its largest event, it may be this much.
UNREAD_BYTES = 4_000_000
CHECKED_BYTES = 1_000_000
RETRY_AFTER = 30  # seconds, for clients that are refused
GONE = (RuntimeError, ConnectionError)  # of Granian: RSGIProtocolClosed

OPEN = Gauge("flagadmin_streams_open", "Streams that a process keeps open.", ["process"])
EVENTS = Counter("flagadmin_stream_events_total", "Events sent to streams.")


def event(name: str, data: bytes, *, identifier: object = None) -> bytes:
    """An event. ``data`` is one line."""
    numbered = b"" if identifier is None else b"id: %b\n" % str(identifier).encode()
    return b"event: %b\n%bdata: %b\n\n" % (name.encode(), numbered, data)


def retry(milliseconds: int) -> bytes:
    """Tells the client how long to wait before it connects again."""
    return b"retry: %d\n\n" % milliseconds


class EventStream:
    """One client's open response."""

    def __init__(self, request: StreamRequest) -> None:
        self._request = request
        self._transport: Any = None
        self.client: str = request.scope.client
        self._sent = 0  # bytes
        self._checked = 0  # bytes sent when it was last seen how much the client has read
        self._largest = 0  # bytes of an event: nobody is expected to read it at once
        self._ended: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    @property
    def is_open(self) -> bool:
        return not self._ended.done()

    async def send(self, data: bytes) -> None:
        """Sends whole events. Never waits for the client: Granian keeps what it has not yet read."""
        if self.is_open:
            if data is not KEEP_ALIVE:
                EVENTS.inc()
            self._sent += len(data)
            self._largest = max(self._largest, len(data))
            try:
                await self._transport.send_bytes(data)
            except GONE:
                self.end()

    def bytes_to_confirm(self) -> int:
        """How many bytes the client must have read by now; 0 if so little was sent that it need not be checked."""
        if self._sent - self._checked < CHECKED_BYTES:
            return 0
        self._checked = self._sent
        return max(0, self._sent - self._largest - UNREAD_BYTES)

    def end(self, farewell: bytes = b"") -> None:
        if self.is_open:
            self._ended.set_result(farewell)

    async def begin(self) -> Any | None:
        """Sends Django's answer. Returns its response's ``stream``; None if it has none, and the answer was all.

        On its own, so that nothing of the answer is kept for as long as the response is open.
        """
        ready, response = await self._request.ask()
        subscription = getattr(response, "stream", None)
        if subscription is None:
            self._request.send(ready)
            return None
        headers = [header for header in ready.headers if header[0].lower() != "content-length"]
        self._transport = self._request.protocol.response_stream(ready.status, headers)
        await self.send(retry(RECONNECT))
        await self.send(ready.body)
        return subscription

    async def until_ended(self) -> None:
        disconnect = asyncio.ensure_future(_disconnected(self._request.protocol, self.end))
        try:
            farewell = await self._ended
            if farewell:
                await self._transport.send_bytes(farewell)
        except GONE:
            pass
        finally:
            self.end()
            disconnect.cancel()
            self._transport = None


class EventStreams:
    """The open streams of this worker, whatever they tell. At most ``settings.STREAMS_LIMIT``."""

    def __init__(self) -> None:
        # A bucket is kept alive each second.
        self._buckets: list[set[EventStream]] = [set() for _ in range(KEEP_ALIVE_SECONDS)]
        self._draining: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def check_room(self) -> None:
        """Raises TooManyRequests. May be called in any thread."""
        if len(self) >= left_for_streams(settings.STREAMS_LIMIT):
            raise TooManyRequests(
                f"{len(self):,} streams are open in this worker. Poll instead, or try again later.",
                headers={"Retry-After": str(RETRY_AFTER)},
            )

    async def serve(
        self, request: StreamRequest, opened: Callable[[Any, EventStream], Callable[[], object]]
    ) -> None:
        """Sends Django's answer, and if its response has a ``stream``, keeps the response open.

        ``opened(response.stream, stream)`` may then send to the stream; what it returns is called at the end.
        """
        stream = EventStream(request)
        subscription = await stream.begin()
        if subscription is None:
            return
        bucket = min(self._buckets, key=len)
        bucket.add(stream)
        self._drain_on(request.stopping)
        closed = opened(subscription, stream)
        try:
            await stream.until_ended()
        finally:
            bucket.discard(stream)
            closed()

    async def keep_alive(self) -> None:
        """A task of the event loop. Each stream gets a comment every KEEP_ALIVE_SECONDS; slow readers are ended."""
        while True:
            for bucket in self._buckets:
                await asyncio.sleep(1)
                for stream in list(bucket):
                    await stream.send(KEEP_ALIVE)
                await self._end_slow_readers()

    async def _end_slow_readers(self) -> None:
        """Granian keeps all that a client has not read: one that reads a little would take more and more."""
        least = {
            stream.client: confirmed
            for bucket in self._buckets
            for stream in bucket
            if (confirmed := stream.bytes_to_confirm())
        }
        if least:
            await asyncio.to_thread(end_slow_readers, least)

    def _drain_on(self, stopping: asyncio.Event) -> None:
        if self._draining is None or self._draining.done():
            self._draining = asyncio.ensure_future(self._drain(stopping))

    async def _drain(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        for bucket in self._buckets:
            for stream in list(bucket):
                stream.end(retry(random.randint(*RECONNECT_SPREAD)))


async def _disconnected(protocol: Any, end: Callable[[], object]) -> None:
    await protocol.client_disconnect()
    end()


streams = EventStreams()


@sampled
def _sample() -> None:
    OPEN.labels(process_name()).set(len(streams))
