"""Reads who sends a request, and what is accepted, from its headers. Knows no framework."""

import re
from typing import Any

_GZIP = re.compile(
    r"(?:^|,)\s*(?:gzip|\*)\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[\d.]+\s*)?(?:,|$)", re.IGNORECASE
)


def read_secret(authorization: str) -> str:
    """The token in an Authorization header, with or without ``Bearer``; empty without one."""
    header = authorization.strip()
    scheme, _, rest = header.partition(" ")
    return rest.strip() if scheme.lower() == "bearer" and rest else header


def get_peer(scope: Any) -> str:
    """The address at the other end of the connection of an RSGI request."""
    return str(scope.client).rpartition(":")[0].strip("[]")


def choose_address(peer: str, forwarded_for: str, *, is_behind_proxy: bool) -> str:
    """Chooses the client's address from the connection's peer and X-Forwarded-For. Our proxies add the last entry."""
    if is_behind_proxy and forwarded_for:
        return forwarded_for.rpartition(",")[2].strip()
    return peer or "unknown"


def accepts_gzip(accept_encoding: str) -> bool:
    return bool(_GZIP.search(accept_encoding))
