"""Validates flag names: they must be safe in a URL and match the project's naming pattern."""

import re
from typing import Protocol
from unicodedata import combining

from playground.engine import patterns

MAX_LENGTH = 100
ALLOWED = "Allowed: letters, digits, - . _ ~"
_FORBIDDEN = re.compile(r"[^A-Za-z0-9._~-]")
_FORBIDDEN_RUN = re.compile(r"[^A-Za-z0-9._~-]+")


class NamingRules(Protocol):
    """A project, or any other object that has a naming pattern."""

    @property
    def naming_pattern(self) -> str: ...
    @property
    def naming_example(self) -> str: ...
    @property
    def naming_description(self) -> str: ...


def find_name_problem(name: str) -> str | None:
    """The problem with a name, or None if it is valid: 1 to 100 letters, digits and ``- . _ ~``."""
    if not name:
        return "a name is required"
    if len(name) > MAX_LENGTH:
        return f"must have at most {MAX_LENGTH} characters, not {len(name)}"
    if name in (".", ".."):
        return f"{name} cannot be used in a URL. {ALLOWED}"
    character = _FORBIDDEN.search(name)
    if character is None:
        return None
    subject = "Spaces are" if character[0].isspace() else f"{_show(character[0])} is"
    slug = _FORBIDDEN_RUN.sub("-", name).strip("-").lower()
    return f"{subject} not allowed. {f'Use {slug}?' if slug else ALLOWED}"


def _show(character: str) -> str:
    """The character, or its number if it is invisible alone: zero-width, a control character or an accent."""
    can_be_seen = character.isprintable() and not combining(character)
    return character if can_be_seen else f"The character U+{ord(character):04X}"


def find_pattern_problem(name: str, rules: NamingRules) -> str | None:
    """The problem if the whole name of a new flag does not match the project's pattern."""
    if not rules.naming_pattern:
        return None
    pattern = patterns.compile_pattern(rules.naming_pattern)
    if pattern is None or pattern.fullmatch(name):
        return None
    message = f"{name} does not match the project's naming pattern {rules.naming_pattern}."
    if rules.naming_example:
        message += f" Example: {rules.naming_example}."
    if rules.naming_description:
        message += f" {rules.naming_description}"
    return message
