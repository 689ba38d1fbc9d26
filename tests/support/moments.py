"""The times of audit events in tests, which often are one transaction with several actions in it."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import connection
from django.utils import timezone

from flagadmin.core.audit.record import MOMENT
from flagadmin.core.db import transactions

_clock = timezone.now


def with_own_moment(to_its_end: Callable[..., Any]) -> Callable[..., Any]:
    """``to_its_end`` of the outermost action, with a moment of its own: now, by the clock of a test that has one."""

    @wraps(to_its_end)
    def run(*args: Any, **kwargs: Any) -> Any:
        if transactions.find_action() is None:
            set_moment("" if timezone.now is _clock else timezone.now().isoformat())
        return to_its_end(*args, **kwargs)

    return run


def set_moment(text: str) -> None:
    """Not a query of the application: tests count those."""
    connection.connection.execute("SELECT set_config(%s, %s, true)", [MOMENT, text])
