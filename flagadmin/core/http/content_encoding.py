"""Reads Accept-Encoding (RFC 9110, 12.5.3). Knows no framework."""

import re

_GZIP = re.compile(
    r"(?:^|,)\s*(?:gzip|\*)\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[\d.]+\s*)?(?:,|$)", re.IGNORECASE
)


def is_gzip_accepted(accept_encoding: str) -> bool:
    return bool(_GZIP.search(accept_encoding))
