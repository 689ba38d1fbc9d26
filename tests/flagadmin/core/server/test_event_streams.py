"""Responses that stay open: how they begin, are kept alive, and end."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpResponse, StreamingHttpResponse

from flagadmin.core.errors import TooManyRequests
from flagadmin.core.server import event_streams, slow_clients
from flagadmin.core.server.event_streams import KEEP_ALIVE, EventStream, EventStreams, make_event, retry
from flagadmin.core.server.loop_routes import Ready, StreamRequest
from tests.support.event_loop import run, until

HEADERS = [("content-type", "text/event-stream"), ("Content-Length", "3")]


class Protocol:
    """Granian's protocol and transport in one."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.answered: list[Any] = []
        self.gone = asyncio.Event()

    def response_bytes(self, *answer: Any) -> None:
        self.answered.append(answer)

    def response_stream(self, status: int, headers: Any) -> "Protocol":
        self.answered.append((status, headers))
        return self

    async def send_bytes(self, data: bytes) -> None:
        if self.gone.is_set():
            raise RuntimeError("RSGI transport is closed")
        self.sent.append(data)

    async def client_disconnect(self) -> None:
        await self.gone.wait()


class Client:
    """Asks ``streams``, and keeps what it was told."""

    def __init__(self, streams: EventStreams, stopping: asyncio.Event, given: Any = "what it is for") -> None:
        self.protocol = Protocol()
        self.closed = False
        self.stream: EventStream | None = None

        async def ask() -> tuple[Ready, Any]:
            if not given:
                return Ready(200, HEADERS, b"one"), HttpResponse()
            response = StreamingHttpResponse([b"o", b"ne"])
            response.stream = given  # type: ignore[attr-defined]
            return Ready(200, HEADERS, b""), response

        request = StreamRequest(SimpleNamespace(client="127.0.0.1:1"), self.protocol, stopping, ask)
        self.task = asyncio.ensure_future(streams.serve(request, self.opened))

    def opened(self, given: Any, stream: EventStream) -> Callable[[], None]:
        self.given, self.stream = given, stream
        return lambda: setattr(self, "closed", True)


def make_streams(limit: int = 5_000) -> EventStreams:
    return EventStreams(lambda: limit)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_an_event_is_a_block_of_lines() -> None:
    assert make_event("changed", b'{"a":1}', identifier=7) == b'event: changed\nid: 7\ndata: {"a":1}\n\n'
    assert make_event("changed", b"x") == b"event: changed\ndata: x\n\n"


def test_a_stream_begins_with_djangos_answer_and_ends_with_the_client() -> None:
    async def work() -> None:
        streams, stopping = make_streams(), asyncio.Event()
        client = Client(streams, stopping)
        await settled()
        assert client.protocol.answered == [(200, HEADERS[:1])]
        assert client.protocol.sent == [retry(event_streams.RECONNECT) + b"one"]
        assert (client.given, len(streams)) == ("what it is for", 1)
        assert client.stream
        await client.stream.send(b"two")
        assert client.protocol.sent[1:] == [b"two"]
        client.protocol.gone.set()
        await client.task
        assert (client.closed, len(streams)) == (True, 0)
        await client.stream.send(b"three")
        assert client.protocol.sent[1:] == [b"two"]

    run(work)


def test_an_answer_without_a_stream_is_all() -> None:
    async def work() -> None:
        client = Client(make_streams(), asyncio.Event(), given=None)
        await client.task
        assert client.protocol.answered == [(200, HEADERS, b"one")]
        assert client.stream is None

    run(work)


def test_a_client_that_is_gone_is_noticed_when_it_is_told_something() -> None:
    async def work() -> None:
        streams = make_streams()
        client = Client(streams, asyncio.Event())
        await settled()
        client.protocol.send_bytes = refuse  # type: ignore[method-assign]
        assert client.stream
        await client.stream.send(b"two")
        await client.task
        assert (client.closed, len(streams)) == (True, 0)

    async def refuse(data: bytes) -> None:
        raise RuntimeError("RSGI transport is closed")

    run(work)


class Unread:
    """A client's connection to this process, of which it has read nothing yet. Granian's protocol and transport in one,
    which keeps what the kernel does not take.
    """

    def __init__(self, data: list[bytes]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.client = socket.create_connection(self._listener.getsockname())
        self._connection, (address, port) = self._listener.accept()
        self._connection.setblocking(False)
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        self.held = bytearray()
        self.is_over = asyncio.Event()

        async def ask() -> tuple[Ready, Any]:
            response = StreamingHttpResponse(data)
            response.stream = "what it is for"  # type: ignore[attr-defined]
            return Ready(200, HEADERS, b""), response

        self.request = StreamRequest(SimpleNamespace(client=f"{address}:{port}"), self, asyncio.Event(), ask)

    def response_stream(self, status: int, headers: Any) -> "Unread":
        return self

    async def send_bytes(self, data: bytes) -> None:
        self.held += data
        self.write()

    def write(self) -> None:
        """Now, and whenever the kernel takes more."""
        with suppress(BlockingIOError):
            while self.held:
                del self.held[: self._connection.send(self.held)]
        loop = asyncio.get_running_loop()
        if self.held:
            loop.add_writer(self._connection, self.write)
        else:
            loop.remove_writer(self._connection)

    async def client_disconnect(self) -> None:
        await self.is_over.wait()

    def read(self, size: int) -> bytes:
        self.client.setblocking(False)
        try:
            return self.client.recv(size)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        with suppress(ValueError):  # has been closed before
            asyncio.get_running_loop().remove_writer(self._connection)
        for end in (self.client, self._connection, self._listener):
            end.close()


MEGABYTES = [bytes([letter]) * 1_000_000 for letter in b"abcdefghij"]


def test_a_stream_that_is_not_read_holds_little_and_goes_on_when_it_is_read() -> None:
    async def work() -> None:
        opened: list[EventStream] = []

        def note(_: Any, stream: EventStream) -> Callable[[], None]:
            opened.append(stream)
            return lambda: None

        with closing(Unread(MEGABYTES)) as connection:
            task = asyncio.ensure_future(make_streams().serve(connection.request, note))
            await until(lambda: connection.held)
            for _ in range(100):  # as long as it likes
                await asyncio.sleep(0.001)
            assert len(connection.held) <= slow_clients.UNREAD_BYTES
            assert not opened
            read = bytearray()
            while len(read) < 10_000_000 or not opened:
                read += connection.read(1_000_000)
                # The kernel may have sent everything just before it is given more.
                assert len(connection.held) <= 2 * slow_clients.UNREAD_BYTES
                await asyncio.sleep(0)
            assert bytes(read) == retry(event_streams.RECONNECT) + b"".join(MEGABYTES)
            told: list[str] = []
            opened[0].when_read = lambda: told.append("read")
            await opened[0].send(MEGABYTES[0])
            assert opened[0].is_busy
            while not told:
                connection.read(1_000_000)
                await asyncio.sleep(0)
            task.cancel()

    run(work)


def test_a_client_that_reads_nothing_for_too_long_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_clients, "READ_SECONDS", 0.05)

    async def work() -> None:
        with closing(Unread(MEGABYTES)) as connection:
            await make_streams().serve(connection.request, lambda *_: pytest.fail("it was not read"))
            with pytest.raises(BrokenPipeError):
                connection.write()

    run(work)


def test_pieces_are_neither_tiny_nor_large() -> None:
    parts = [b"", b"a", b"b" * 70_000, b",", b"c" * 200_000, b""]
    pieces = list(slow_clients.cut(parts))
    assert b"".join(pieces) == b"".join(parts)
    assert {len(piece) for piece in pieces[:-1]} == {slow_clients.PIECE_BYTES}


def test_all_streams_are_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda seconds: sleep(0))

    async def work() -> None:
        streams = make_streams()
        clients = [Client(streams, asyncio.Event()) for _ in range(60)]
        for _ in range(10):
            await sleep(0)
        assert max(map(len, streams._buckets)) - min(map(len, streams._buckets)) <= 1  # no burst
        keeping = asyncio.ensure_future(streams.keep_alive())
        while not all(KEEP_ALIVE in client.protocol.sent for client in clients):
            await sleep(0)
        keeping.cancel()
        for client in clients:
            client.task.cancel()

    run(work)


def test_when_the_worker_stops_clients_come_back_one_after_another() -> None:
    async def work() -> None:
        streams, stopping = make_streams(), asyncio.Event()
        clients = [Client(streams, stopping) for _ in range(20)]
        await settled()
        stopping.set()
        await asyncio.gather(*(client.task for client in clients))
        assert len({client.protocol.sent[-1] for client in clients}) > 10
        late = Client(streams, stopping)
        await late.task
        assert late.protocol.sent[-1].startswith(b"retry: ")
        assert len(streams) == 0

    run(work)


def test_no_more_streams_than_the_limit_are_opened() -> None:
    async def work() -> None:
        streams = make_streams(1)
        streams.check_room()
        client = Client(streams, asyncio.Event())
        await settled()
        with pytest.raises(TooManyRequests) as refused:
            streams.check_room()
        assert refused.value.headers == {"Retry-After": "30"}
        client.task.cancel()

    run(work)


@pytest.mark.parametrize(("soft", "streams"), [(100, 0), (2_024, 1_000), (100_000, 5_000), (-1, 5_000)])
def test_streams_leave_open_files_for_others(
    monkeypatch: pytest.MonkeyPatch, soft: int, streams: int
) -> None:
    monkeypatch.setattr(event_streams.resource, "getrlimit", lambda _: (soft, soft))
    assert event_streams.count_files_for_streams(5_000) == streams


@pytest.mark.parametrize(
    ("limits", "set_to"),
    [((1_024, 20_000), 6_024), ((1_024, 4_096), 4_096), ((1_024, -1), 6_024), ((9_000, 9_000), None)],
)
def test_the_limit_of_open_files_is_raised_as_far_as_possible(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], set_to: int | None
) -> None:
    made: list[Any] = []
    monkeypatch.setattr(event_streams.resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(event_streams.resource, "setrlimit", lambda _, given: made.append(given))
    event_streams.raise_limit(6_024)
    assert made == ([] if set_to is None else [(set_to, limits[1])])
