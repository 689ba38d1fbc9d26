"""Rules for the installation's settings."""

import re
from collections.abc import Iterator, Sequence

from flagadmin.core.errors import Problem

MAX_ORIGINS = 100
ALL = "*"
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@,]{1,253}", re.IGNORECASE)


def problems_of_origins(origins: Sequence[str]) -> Iterator[Problem]:
    """Each is ``*`` or a browser's ``Origin`` header: scheme, host and, unless it is the default, port."""
    if len(origins) > MAX_ORIGINS:
        yield Problem("frontendApiOrigins", f"At most {MAX_ORIGINS} origins.")
    for index, origin in enumerate(origins):
        if origin != ALL and not _ORIGIN.fullmatch(origin):
            yield Problem(
                f"frontendApiOrigins[{index}]",
                f"{origin[:200]} is not an origin. Enter * or, for example, https://app.example.org.",
            )
