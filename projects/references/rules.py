"""Rules for reports of references in code."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from flagadmin.core.errors import Problem

MAX_REPORTS = 1_000
MAX_PLACES = 100
"""The maximum number of stored places of a flag in a repository; others are only counted."""
MAX_PATH = 500
_FIELD = re.compile(r"\{(\w*)\}")
LINK_FIELDS = ("path", "line", "revision")


def report_problems(values: Mapping[str, Any]) -> Iterator[Problem]:
    if link := values.get("link"):
        try:
            is_address = urlsplit(link).scheme in ("http", "https") and bool(urlsplit(link).hostname)
        except ValueError:
            is_address = False
        if not is_address:
            yield Problem("link", "must be an address that begins with http:// or https://")
        if unknown := set(_FIELD.findall(link)) - set(LINK_FIELDS):
            yield Problem("link", f"has no {{{min(unknown)}}}, only {{path}}, {{line}} and {{revision}}")
