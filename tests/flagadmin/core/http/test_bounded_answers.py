"""Answers of other servers end in time, wherever they are slow."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
import requests

from flagadmin.core.http.outside import bound

ENOUGH = 10  # seconds


@pytest.fixture
def answering() -> Iterator[tuple[str, list[bytes], threading.Event]]:
    """A server's URL, the parts of its answer, each sent again and again until the event, and that event."""
    parts: list[bytes] = []
    over = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        connection, _ = server.accept()
        connection.recv(65_536)
        connection.sendall(parts[0])
        with connection, suppress(OSError):
            while len(parts) > 1 and not over.wait(0.05):
                connection.sendall(parts[1])

    serving = threading.Thread(target=answer, daemon=True)
    serving.start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}", parts, over
    over.set()
    serving.join(ENOUGH)
    server.close()


def test_an_answer_in_time_is_read(answering):
    url, parts, _ = answering
    parts.append(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    with bound(requests.Session()) as session:
        assert session.get(url, timeout=ENOUGH).content == b"{}"


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX-Slow: "])
def test_headers_that_come_byte_by_byte_are_ended(answering, beginning):
    url, parts, _ = answering
    parts += [beginning, b"x"]
    began = time.monotonic()
    with bound(requests.Session()) as session, pytest.raises(requests.Timeout):
        session.get(url, timeout=0.3, stream=True)
    assert time.monotonic() - began < ENOUGH


def test_headers_from_a_proxy_are_ended_too(answering):
    proxy, parts, _ = answering
    parts += [b"HTTP/1.1 200 OK\r\n", b"x"]
    with (
        bound(requests.Session()) as session,
        pytest.raises(requests.exceptions.ProxyError, match="timed out"),
    ):
        session.get("http://flags.invalid/", proxies={"http": proxy}, timeout=0.3, stream=True)


def test_headers_without_end_are_ended(answering):
    url, parts, _ = answering
    parts += [b"HTTP/1.1 200 OK\r\n", b"X-More: yes\r\n"]
    with bound(requests.Session()) as session, pytest.raises(requests.RequestException):
        session.get(url, timeout=0.3, stream=True)
