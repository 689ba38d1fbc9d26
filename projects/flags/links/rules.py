"""Validates the links of flags: http and https URLs only, because the console opens them in the browser."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from flagadmin.core.errors import Problem
from projects.rules import Limits

MAX_LENGTH = 2000
_DEFAULT_PORTS = {"http": 80, "https": 443}


def normalize_url(url: str) -> str | None:
    """The URL as stored, or None if it is not a web URL.

    As in the reference, ``example.com`` becomes ``https://example.com``, and ``www.``, a default port and a
    trailing slash are removed.
    """
    text = url.strip()
    if "://" not in text and not text.lower().startswith(("javascript:", "data:", "mailto:")):
        text = "https://" + text.removeprefix("//")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if not _is_web_address(parts, text):
        return None
    host = (parts.hostname or "").removeprefix("www.")
    if ":" in host:
        host = f"[{host}]"
    if port is not None and port != _DEFAULT_PORTS[parts.scheme]:
        host += f":{port}"
    return parts._replace(netloc=host, path=parts.path.rstrip("/")).geturl()


def _is_web_address(parts: SplitResult, text: str) -> bool:
    return (
        parts.scheme in _DEFAULT_PORTS
        and bool((parts.hostname or "").removeprefix("www."))
        and "@" not in parts.netloc
        and len(text) <= MAX_LENGTH
        and not any(character.isspace() or character in '<>"\\' or ord(character) < 32 for character in text)
    )


def link_problems(links: Sequence[Mapping[str, Any]], path: str, *, limits: Limits) -> Iterator[Problem]:
    """Problems with the links of one flag."""
    if len(links) > limits.links:
        yield Problem(path, f"must have at most {limits.links} links, not {len(links)}")
    for index, link in enumerate(links):
        if normalize_url(link["url"]) is None:
            yield Problem(f"{path}[{index}].url", f"{link['url']} is not a web URL")
