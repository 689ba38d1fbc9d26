"""Decides which outside addresses the server may connect to on behalf of people."""

import ipaddress
import socket
import time
from typing import Any

from django.conf import settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
MAX_ADDRESSES = 20  # of a host that are tried
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Refused(Exception):
    """The URL must not be sent to. It will not be different at the next attempt."""


def is_allowed(address: Address, *, encrypted: bool) -> bool:
    """Public addresses with TLS, and the networks of FLAGADMIN_INTEGRATION_NETWORKS."""
    address = _get_embedded(address)
    if any(address in network for network in settings.INTEGRATION_NETWORKS):
        return True
    is_special = address.is_multicast or address.is_reserved or getattr(address, "is_site_local", False)
    return encrypted and address.is_global and not is_special


def _get_embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to, if it does."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return address.ipv4_mapped or address.sixtofour or address
    return address


def connect(host: str, port: int, *, encrypted: bool, timeout: float) -> socket.socket:
    """Connects to an address that was checked itself, so that a second look-up of the name cannot lead elsewhere.

    ``timeout`` is for all addresses of the host together. Raises Refused, OSError.
    """
    failure: OSError | None = None
    until = time.monotonic() + timeout
    addresses = _look_up(host, port)
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        _check_allowed(host, str(address[0]), encrypted=encrypted)
        sock = socket.socket(family, kind, protocol)
        try:
            # Each has its share of what is left: one that does not answer leaves the others some.
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
    if not is_allowed(ipaddress.ip_address(address.partition("%")[0]), encrypted=encrypted):
        raise Refused(
            f"{host} has the address {address}, which {'is not public' if encrypted else 'needs https'}."
            " FLAGADMIN_INTEGRATION_NETWORKS can allow it."
        )
