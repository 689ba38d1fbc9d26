"""Validates flag names: they must be safe in a URL and match the project's naming pattern.

Rules for the owner of a flag, a person or a group.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol
from unicodedata import combining

from flagadmin.core.errors import Problem
from groups.models import Group, User
from playground.engine import operators

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
    pattern = operators.compile_pattern(rules.naming_pattern)
    if pattern is None or pattern.fullmatch(name):
        return None
    message = f"{name} does not match the project's naming pattern {rules.naming_pattern}."
    if rules.naming_example:
        message += f" Example: {rules.naming_example}."
    if rules.naming_description:
        message += f" {rules.naming_description}"
    return message


Columns = dict[str, int | None]


def make_owner_columns(kind: str | None, owner_id: int | None) -> Columns:
    """``owner_user_id`` and ``owner_group_id`` of a flag. ``kind``: "user", "group", or None without an owner."""
    return {f"owner_{each}_id": owner_id if kind == each else None for each in ("user", "group")}


def owner_problems(values: Mapping[str, Any]) -> Iterator[Problem]:
    """Yields the problems of the owner's columns among the values."""
    user, group = values.get("owner_user_id"), values.get("owner_group_id")
    if user is not None and not User.objects.people().filter(pk=user).exists():
        yield Problem("owner", f"Person with id {user} not found.")
    if group is not None and not Group.objects.filter(pk=group).exists():
        yield Problem("owner", f"Group with id {group} not found.")


def find_remaining_owner(owner: Mapping[str, Any] | None) -> Columns:
    """The columns of a former owner; empty if the person or the group no longer exists."""
    if owner is None:
        return make_owner_columns(None, None)
    columns = make_owner_columns(owner["kind"], owner["id"])
    return make_owner_columns(None, None) if [*owner_problems(columns)] else columns
