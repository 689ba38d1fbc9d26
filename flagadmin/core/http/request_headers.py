"""Reads the sender, the accepted encodings and the known ETags from headers. Knows no framework."""

import re
from collections.abc import Container
from typing import Any

_GZIP = re.compile(
    r"(?:^|,)\s*(?:gzip|\*)\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[\d.]+\s*)?(?:,|$)", re.IGNORECASE
)


def read_secret(authorization: str) -> str:
    """The token in an Authorization header, with or without ``Bearer``; empty without one."""
    header = authorization.strip()
    scheme, _, rest = header.partition(" ")
    return rest.strip() if scheme.lower() == "bearer" and rest else header


def select_headers(scope: Any, names: Container[str]) -> dict[str, str]:
    """Those headers of an RSGI request, joined as in `make_environ`."""
    headers: dict[str, str] = {}
    for name, value in scope.headers.items():
        if name in names:
            headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


def get_peer(scope: Any) -> str:
    """The address of the peer of an RSGI request."""
    return str(scope.client).rpartition(":")[0].strip("[]")


def choose_address(peer: str, forwarded_for: str, *, is_behind_proxy: bool) -> str:
    """Chooses the client's address from the connection's peer and X-Forwarded-For. Our proxies add the last entry."""
    if is_behind_proxy and forwarded_for:
        return forwarded_for.rpartition(",")[2].strip()
    return peer or "unknown"


def accepts_gzip(accept_encoding: str) -> bool:
    return bool(_GZIP.search(accept_encoding))


_ETAG = re.compile(r'(?:W/)?("[^"]*")')


def read_etags(header: str) -> list[str]:
    """Reads the ETags of an If-None-Match header as strong ones, or ``["*"]``. Skips invalid ETags."""
    if header.strip() == "*":
        return ["*"]
    matches = (_ETAG.fullmatch(etag.strip()) for etag in header.split(","))
    return [match[1] for match in matches if match]


def is_listed(header: str, etag: str) -> bool:
    """Whether an If-None-Match header contains this ETag, by weak comparison."""
    if not header or header == etag:  # the usual cases
        return bool(header)
    known = read_etags(header)
    return known == ["*"] or etag.removeprefix("W/") in known
