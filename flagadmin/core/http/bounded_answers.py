"""Reads answers of other servers, which may be slow, endless or unpack to anything."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, ProtocolError

S = TypeVar("S", bound=requests.Session)
CHUNK = 65_536  # bytes that are read, or unpacked, at once


class AnswerTooLarge(requests.RequestException):
    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"its answer has more than {max_bytes:,} bytes")


def read_bounded(answer: requests.Response, *, max_bytes: int, until: float) -> bytes:
    """Reads the body of an answer to a request with ``stream=True``, decompressed.

    ``until`` is of `time.monotonic`: the timeout of requests begins anew with each byte. Raises AnswerTooLarge,
    requests.Timeout, requests.ConnectionError.
    """
    body = bytearray()
    try:
        while chunk := answer.raw.read1(CHUNK, decode_content=True):
            body += chunk
            if len(body) > max_bytes:
                raise AnswerTooLarge(max_bytes)
            if time.monotonic() > until:
                raise requests.Timeout("no complete answer in time")
    except ProtocolError:
        raise requests.ConnectionError("the answer was cut off") from None
    except HTTPError as error:
        raise requests.ConnectionError(error) from error
    return bytes(body)


class HeadersInTime(HTTPConnection):
    """The timeout for reading is one for all headers together: a socket's begins anew with each byte."""

    def getresponse(self) -> Any:
        with _end_after(self.timeout, self.sock):
            return super().getresponse()


@contextmanager
def _end_after(seconds: float | None, open_socket: Any) -> Iterator[None]:
    """Raises TimeoutError if the context took longer."""
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        with suppress(OSError):  # it has just ended
            open_socket.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds or 0, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if is_late.is_set():
            raise TimeoutError("no complete headers in time")


class EncryptedHeadersInTime(HeadersInTime, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = HeadersInTime


class _EncryptedPool(HTTPSConnectionPool):
    ConnectionCls = EncryptedHeadersInTime


class BoundedAdapter(HTTPAdapter):
    """Connections whose headers come in time."""

    pools: dict[str, type[HTTPConnectionPool]] = {"http": _Pool, "https": _EncryptedPool}

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = self.pools

    def proxy_manager_for(self, *args: Any, **options: Any) -> Any:
        manager = super().proxy_manager_for(*args, **options)
        manager.pool_classes_by_scheme = self.pools
        return manager


def bound(session: S, adapter: type[BoundedAdapter] = BoundedAdapter) -> S:
    """Bounds the time for headers and returns the session. Each of its requests must have a timeout."""
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter())
    return session
