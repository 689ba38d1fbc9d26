"""How changes are made, beside what they change.

Said once, where a request, a command or a task begins (`changing`), and read where it matters.
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
    """Why: all audit events keep it. A function is called when there is an event to record."""
    override_by: Any = None
    """The caller who makes changes that break expectations, if they may. None: these are refused."""
    skip_by: Any = None
    """The caller who makes changes at once that need a change request, if they may. None: these are refused."""
    approved_in: tuple[str, str] = ("", "")
    """The project and the environment whose approved changes are made: they need no other change request."""
    is_postponed: bool = False
    """The changes are to be made later: a check refuses them, with `Refusal.settle` saying how."""
    keeps_unreadable: bool = False
    """Values that SDKs cannot read are stored. Otherwise they are refused."""
    unreadable: list[Problem] | None = None
    """A list to which these values are added, whether they are stored or not."""
    ignores_legal_values: bool = False
    """Constraints may have any value: what comes from elsewhere may be older than the limits of its fields."""
    ignores_maintenance: bool = False
    """For logins that create or update accounts, and for the startup of a server."""


_DEFAULTS = ChangeOptions()
_options: ContextVar[ChangeOptions] = ContextVar("change_options", default=_DEFAULTS)


def get_change_options() -> ChangeOptions:
    return _options.get()


def get_comment() -> str:
    """Raises CommentRefused, ValidationError, if it is still to be read from a request."""
    comment = _options.get().comment
    return comment if isinstance(comment, str) else comment()


@contextmanager
def changing(**options: Any) -> Iterator[None]:
    """Sets these options for all that is changed meanwhile. The others stay as they are."""
    token = _options.set(replace(_options.get(), **options))
    try:
        yield
    finally:
        _options.reset(token)
