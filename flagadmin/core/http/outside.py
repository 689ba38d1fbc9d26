"""Calls to other servers: allowed addresses, how much of an answer is read, and retry times."""

import ipaddress
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

import requests
from django.conf import settings
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, ProtocolError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
MAX_ADDRESSES = 20  # addresses tried per host
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Refused(Exception):
    """The URL must not be called. A later attempt will fail too."""


def is_url(text: str) -> bool:
    """Whether the text is a URL of http or https, in printable ASCII and without a user."""
    parts = split_url(text)
    return (
        parts is not None
        and parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and parts.port != 0
        and "@" not in parts.netloc
        and text.isascii()
        and text.isprintable()
        and " " not in text
    )


def split_url(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    return parts


def is_allowed(address: Address, *, encrypted: bool) -> bool:
    """Whether the address may be called: public ones with TLS, and the networks of FLAGADMIN_INTEGRATION_NETWORKS."""
    address = _get_embedded(address)
    if any(address in network for network in settings.INTEGRATION_NETWORKS):
        return True
    is_special = address.is_multicast or address.is_reserved or getattr(address, "is_site_local", False)
    return encrypted and address.is_global and not is_special


def _get_embedded(address: Address) -> Address:
    """The IPv4 address embedded in an IPv6 address; otherwise the address itself."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return address.ipv4_mapped or address.sixtofour or address
    return address


def connect(host: str, port: int, *, encrypted: bool, timeout: float) -> socket.socket:
    """Connects to the very address that was checked, so that a second look-up of the name cannot lead elsewhere.

    ``timeout`` applies to all addresses of the host together. Raises Refused, OSError.
    """
    failure: OSError | None = None
    until = time.monotonic() + timeout
    addresses = _look_up(host, port)
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        _check_allowed(host, str(address[0]), encrypted=encrypted)
        sock = socket.socket(family, kind, protocol)
        try:
            # Each address gets a share of the remaining time, so that a silent one leaves some for the others.
            sock.settimeout(max(0.1, (until - time.monotonic()) / (len(addresses) - number)))
            sock.connect(address)
            sock.settimeout(timeout)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as error:
            sock.close()
            failure = error
    raise failure or OSError(f"{host} has no address.")


def _look_up(host: str, port: int) -> list[Any]:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[:MAX_ADDRESSES]
    except UnicodeError:  # an empty label, or one that is too long
        raise Refused(f"{host} is not a valid host name.") from None


def _check_allowed(host: str, address: str, *, encrypted: bool) -> None:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if is_allowed(parsed, encrypted=encrypted):
        return
    if is_allowed(parsed, encrypted=True):
        raise Refused(f"{host} needs https. Allow http with FLAGADMIN_INTEGRATION_NETWORKS.")
    known = f"{host} is a private address" if host == address else f"{host} has the private address {address}"
    raise Refused(f"{known}. Allow it with FLAGADMIN_INTEGRATION_NETWORKS.")


S = TypeVar("S", bound=requests.Session)
CHUNK = 65_536  # bytes read or unpacked at once


class AnswerTooLarge(requests.RequestException):
    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"its answer has more than {max_bytes:,} bytes")


def read_bounded(answer: requests.Response, *, max_bytes: int, until: float) -> bytes:
    """Reads the body of an answer to a request with ``stream=True``, decompressed.

    ``until`` is a time of `time.monotonic`: the timeout of requests restarts with each byte. Raises AnswerTooLarge,
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
    """Applies the read timeout to all headers together: a socket's timeout restarts with each byte."""

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


CONNECT_SECONDS = 10.0


class _CheckedConnection(HeadersInTime):
    def _new_conn(self) -> socket.socket:
        return connect(self._dns_host, self.port or 80, encrypted=False, timeout=CONNECT_SECONDS)


class _EncryptedCheckedConnection(EncryptedHeadersInTime):
    def _new_conn(self) -> socket.socket:
        return connect(self._dns_host, self.port or 443, encrypted=True, timeout=CONNECT_SECONDS)


class _CheckedPool(HTTPConnectionPool):
    ConnectionCls = _CheckedConnection


class _EncryptedCheckedPool(HTTPSConnectionPool):
    ConnectionCls = _EncryptedCheckedConnection


class _CheckedAdapter(BoundedAdapter):
    pools = {"http": _CheckedPool, "https": _EncryptedCheckedPool}


def checked_session() -> requests.Session:
    """Connects to allowed addresses only. Uses no proxy, which would connect to unchecked ones."""
    session = bound(requests.Session(), _CheckedAdapter)
    session.trust_env = False
    session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True
    return session


def read_retry_after(text: str) -> float | None:
    """The seconds to wait, given as a number or as a date. None for anything else."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:10])
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
