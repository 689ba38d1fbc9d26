"""Names of flags: safe in an address, and in the project's own pattern."""

import re
from typing import Protocol

from playground.engine import patterns

MAX_LENGTH = 100
ALLOWED = "Allowed: letters, digits, - . _ ~"
_FORBIDDEN = re.compile(r"[^A-Za-z0-9._~-]")


class NamingRules(Protocol):
    """A project, or whatever else knows its naming pattern."""

    @property
    def naming_pattern(self) -> str: ...
    @property
    def naming_example(self) -> str: ...
    @property
    def naming_description(self) -> str: ...


def name_problem(name: str) -> str | None:
    """What is wrong with a name, None when nothing is: 1 to 100 of letters, digits, ``- . _ ~``."""
    if not name:
        return "a name is required"
    if len(name) > MAX_LENGTH:
        return f"must have at most {MAX_LENGTH} characters, not {len(name)}"
    if name in (".", ".."):
        return f"{name} cannot be used in a URL. {ALLOWED}"
    found = _FORBIDDEN.search(name)
    if found is None:
        return None
    what = "spaces are" if found[0].isspace() else f"{found[0]} is"
    return f"{what} not allowed. {ALLOWED}"


def pattern_problem(name: str, rules: NamingRules) -> str | None:
    """Whether a new flag's name matches the project's pattern as a whole; existing flags keep their names."""
    if not rules.naming_pattern:
        return None
    pattern = patterns.compiled(rules.naming_pattern)
    if pattern is None or pattern.fullmatch(name):
        return None
    message = f"{name} does not match the project's naming pattern {rules.naming_pattern}."
    if rules.naming_example:
        message += f" Example: {rules.naming_example}."
    if rules.naming_description:
        message += f" {rules.naming_description}"
    return message
