"""How changes are made: options that apply to a change as a whole.

The start of a request, command or task sets them (`changing`); code reads them where it needs them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from flagadmin.core.errors import Problem


@dataclass(frozen=True)
class ChangeOptions:
    comment: str | Callable[[], str] = ""
    """The reason, stored in all audit events. A function is called when there is an event to record."""
    approved_in: tuple[str, str] = ("", "")
    """The project and environment whose approved changes are applied. They need no other change request."""
    approved_by: int | None = None
    """The change request that is applied."""
    keeps_unreadable: bool = False
    """Whether values that SDKs cannot read are stored. Otherwise they are refused."""
    unreadable: list[Problem] | None = None
    """A list that collects these values, whether they are stored or not."""
    comes_from_elsewhere: bool = False
    """The data comes from another server: constraints may have values that are not valid here, and percentages stay
    unchanged.
    """


_DEFAULTS = ChangeOptions()
_options: ContextVar[ChangeOptions] = ContextVar("change_options", default=_DEFAULTS)


def get_change_options() -> ChangeOptions:
    return _options.get()


def get_comment() -> str:
    """The comment. Raises CommentRefused, ValidationError, if it has yet to be read from a request."""
    comment = _options.get().comment
    return comment if isinstance(comment, str) else comment()


@contextmanager
def changing(**options: Any) -> Iterator[None]:
    """Sets these options for all changes made inside. The other options stay as they are."""
    token = _options.set(replace(_options.get(), **options))
    try:
        yield
    finally:
        _options.reset(token)


def is_applied_to(project_id: str, environment: str) -> bool:
    return find_applied_environment(project_id) == environment


def find_applied_environment(project_id: str) -> str:
    """The environment of the project in which approved changes are being made, "" if it is none."""
    project, environment = get_change_options().approved_in
    return environment if project == project_id else ""
