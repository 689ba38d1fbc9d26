"""Checks of a change as a whole: once all of it is written, before it is committed.

An app registers what it wants to see hold. `projects.access` begins the checks of each project that it locks for a
change, if the project asks for them. A request may say that it wants to make the change anyway.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from flagadmin.db.transactions import at_end_of_action
from flagadmin.errors import AppError, Conflict, Problem, counted

P = ParamSpec("P")
R = TypeVar("R")

Check = Callable[[str], Callable[[], None]]
"""Looks at a project (its id) before it changes. Returns what is called afterwards, and raises to undo the change."""
_checks: list[Check] = []
_overriding: ContextVar[Any] = ContextVar("overriding", default=None)


class BrokenExpectationsConflict(Conflict):
    """409: the change breaks expectations of saved contexts, and the project refuses that."""

    name = "BrokenExpectationsError"


class BrokenExpectations(Exception):
    """A change breaks ``count`` expectations. The first have a sentence each, by saved context, and a JSON document.

    It is no AppError itself, so that forms and buttons, which show those, let it through: `ConsolePage` asks whether to
    save anyway.
    """

    def __init__(
        self, project_id: str, problems: Sequence[Problem], documents: Sequence[Any], count: int
    ) -> None:
        super().__init__(project_id, problems, documents, count)
        self.project_id, self.problems, self.documents, self.count = project_id, problems, documents, count

    status = BrokenExpectationsConflict.status

    @property
    def more(self) -> int:
        return self.count - len(self.problems)

    @property
    def message(self) -> str:
        found = counted(self.count, "expectation")
        return f"This breaks {found}, which project {self.project_id} refuses. Nothing was saved."

    def as_app_error(self) -> AppError:
        return BrokenExpectationsConflict(
            f"{self.message} With ignoreExpectations=true it is saved anyway.",
            details=self.problems,
            count=self.count,
            extra={"expectations": list(self.documents)},
        )


def register(check: Check) -> None:
    _checks.append(check)


def begin(project_id: str) -> None:
    """Begins the checks of a project that is locked and unchanged. They end with the action that is running."""
    for check in _checks:
        at_end_of_action((check, project_id), lambda check=check: check(project_id))  # type: ignore[misc]


@contextmanager
def overriding(caller: Any) -> Iterator[None]:
    """What a check finds is recorded rather than refused, if this caller may do that. None: it is refused."""
    token = _overriding.set(caller)
    try:
        yield
    finally:
        _overriding.reset(token)


def override_by() -> Any:
    """The caller who wants to make the change that is running in spite of what checks find, or None."""
    return _overriding.get()


def call_overriding(caller: Any, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls ``work`` in another process as `overriding` would here."""
    with overriding(caller):
        return work(*args, **kwargs)
