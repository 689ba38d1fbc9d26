"""Decides which outside addresses the server may connect to on behalf of people."""

import ipaddress
import socket

from django.conf import settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
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

    Raises Refused, OSError.
    """
    failure: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        if not is_allowed(ipaddress.ip_address(str(address[0]).partition("%")[0]), encrypted=encrypted):
            raise Refused(
                f"{host} has the address {address[0]}, which {'is not public' if encrypted else 'needs https'}."
                " FLAGADMIN_INTEGRATION_NETWORKS can allow it."
            )
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(timeout)
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as error:
            sock.close()
            failure = error
    raise failure or OSError(f"{host} has no address.")
