"""Reads the versions of a delta that clients have. Knows no framework."""

from flagadmin.core.http.etag_lists import read_etags

MAX_DIGITS = 16


def read_version(text: str) -> int | None:
    """None for what is no version, such as an empty text."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None


def read_known_version(if_none_match: str, suffix: str = "") -> int | None:
    """The largest version in If-None-Match, among ETags with this suffix; None if there is none."""
    etags = (etag.strip('"') for etag in read_etags(if_none_match))
    versions = (read_version(etag.removesuffix(suffix)) for etag in etags if etag.endswith(suffix))
    return max((version for version in versions if version is not None), default=None)
