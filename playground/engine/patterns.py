"""Regular expressions with RE2: linear time in the length of the string, and bounded memory.

A pattern stored by one person runs in everyone's evaluations. Therefore its length, its memory, the matched text and
the number of compiled patterns per process are limited.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

MAX_LENGTH = 2_000
"""Characters of a pattern, and of any single value of a constraint."""
TEXT_LENGTHS = (10_000, 1_000, 100)
"""Lengths in characters of matched texts: a pattern gets the longest within ``MAX_STEPS``."""
MAX_TEXT_LENGTH = TEXT_LENGTHS[0]
MAX_STEPS = 300_000
"""Instructions of a pattern times characters: about 3 ms if RE2 cannot cache its states."""
MAX_MEMORY = 256 * 1024
"""Bytes of one compiled pattern with RE2's cached states."""
MAX_GROUPS = 20
"""Named groups of a pattern; other groups are not captured."""
KEPT = 1_000
"""Compiled patterns per process."""

INVALID = "is not a valid regular expression (RE2)"
_SINGLE_BYTE = re.compile(r"(?:^|[^\\])(?:\\\\)*\\C")
"""`\\C` matches a single byte, which may be part of a character. Only the C++ library supports it."""


def find_fault(pattern: str, *, case_insensitive: bool = False, captures: bool = False) -> str | None:
    """Why a pattern cannot be run, as the end of a sentence about it; None if it is valid.

    With ``captures``, unnamed groups are captured too.
    """
    if len(pattern) > MAX_LENGTH:
        return f"is longer than {MAX_LENGTH:,} characters"
    expression = _compile(pattern, case_insensitive, captures)
    return expression if isinstance(expression, str) else None


def compile_pattern(pattern: str, *, case_insensitive: bool = False, captures: bool = False) -> Any:
    """The compiled pattern; None if it is invalid. RE2 supports neither look-around nor back-references."""
    expression = _compile(pattern, case_insensitive, captures) if len(pattern) <= MAX_LENGTH else None
    return None if isinstance(expression, str) else expression


def find_longest_text(pattern: str, *, case_insensitive: bool = False) -> int:
    """The longest string, in characters, that a valid pattern is matched against."""
    size = compile_pattern(pattern, case_insensitive=case_insensitive).programsize
    return next((length for length in TEXT_LENGTHS if length * size <= MAX_STEPS), TEXT_LENGTHS[-1])


@lru_cache(maxsize=KEPT)
def _compile(pattern: str, case_insensitive: bool, captures: bool) -> Any:
    """The compiled pattern, or its fault."""
    if _SINGLE_BYTE.search(pattern):
        return INVALID
    options = re2.Options()
    options.log_errors = False
    options.never_capture = not captures
    options.max_mem = MAX_MEMORY
    options.case_sensitive = not case_insensitive
    try:
        expression = re2.compile(pattern, options)
        kind = "groups" if captures else "named groups"
        return expression if expression.groups <= MAX_GROUPS else f"has more than {MAX_GROUPS} {kind}"
    except re2.error as error:
        return "takes too much memory" if "too large" in str(error) else INVALID
    finally:
        re2.purge()  # the library has its own cache
