"""Idle connections stay open between two polls, and those whose headers do not arrive are closed."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from flagadmin.core.server.slow_clients import HEADER_SECONDS, HTTP1, SlowRequests, answering

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client and the connection that this process has accepted from it."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        client = stack.enter_context(socket.create_connection(listener.getsockname(), 5))
        yield client, stack.enter_context(listener.accept()[0])


def send(sender: socket.socket, receiver: socket.socket, data: bytes) -> None:
    sender.sendall(data)
    assert receiver.recv(len(data), socket.MSG_WAITALL) == data


def is_closed(client: socket.socket) -> bool:
    """Two looks at the server's connections, so far apart that headers are too late."""
    slow = SlowRequests()
    slow.end(0.0)
    slow.end(HEADER_SECONDS)
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False


def test_sdks_poll_on_one_connection() -> None:
    assert HTTP1.keep_alive
    assert HTTP1.header_read_timeout >= 75_000


def test_headers_that_do_not_arrive_end_the_connection(pair) -> None:
    client, connection = pair
    send(client, connection, REQUEST[:20])
    assert is_closed(client)


def test_a_client_that_trickles_its_headers_is_not_waited_for(pair) -> None:
    client, connection = pair
    slow = SlowRequests()
    for second in range(int(HEADER_SECONDS) + 1):
        send(client, connection, REQUEST[second : second + 1])
        slow.end(float(second))
    assert client.recv(1) == b""


def test_a_request_that_is_being_answered_may_take_its_time(pair) -> None:
    client, connection = pair
    send(client, connection, REQUEST)
    host, port = connection.getpeername()
    answering.add(f"{host}:{port}")
    try:
        assert not is_closed(client)
    finally:
        answering.clear()


def test_an_idle_connection_stays_open(pair) -> None:
    client, connection = pair
    assert not is_closed(client)
    client.setblocking(True)
    send(client, connection, REQUEST)
    send(connection, client, b"HTTP/1.1 204 \r\n\r\n")
    assert not is_closed(client)


def test_connections_that_this_process_opened_are_left_alone(pair) -> None:
    client, connection = pair
    send(connection, client, b"a notification")
    slow = SlowRequests()
    slow.end(0.0)
    slow.end(HEADER_SECONDS)
    send(client, connection, b"x")


def test_each_request_has_its_own_time(pair) -> None:
    """A look may meet two requests of a client that calls often just as they arrive."""
    client, connection = pair
    slow = SlowRequests()
    for moment in (0.0, HEADER_SECONDS):
        send(client, connection, REQUEST)
        slow.end(moment)
        send(connection, client, b"HTTP/1.1 204 \r\n\r\n")
    send(client, connection, REQUEST)
