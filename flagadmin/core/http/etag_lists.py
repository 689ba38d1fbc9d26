"""Reads If-None-Match (RFC 9110, 13.1.2). Knows no framework."""

import re

_ETAG = re.compile(r'(?:W/)?("[^"]*")')


def read_etags(header: str) -> list[str]:
    """Reads the ETags of an If-None-Match header as strong ones, or ``["*"]``. Leaves out what is not an ETag."""
    if header.strip() == "*":
        return ["*"]
    matches = (_ETAG.fullmatch(etag.strip()) for etag in header.split(","))
    return [match[1] for match in matches if match]


def is_listed(header: str, etag: str) -> bool:
    """Whether an If-None-Match header contains this ETag, by weak comparison."""
    if not header or header == etag:  # most are
        return bool(header)
    known = read_etags(header)
    return known == ["*"] or etag.removeprefix("W/") in known
