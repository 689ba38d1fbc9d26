"""Says which environment's approved changes are being made: they pass the gate. Or which request would make others."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from releases.derive import ProposedChange

_applying: ContextVar[tuple[str, str] | None] = ContextVar("applying", default=None)
_proposing: ContextVar[Sequence[ProposedChange] | None] = ContextVar("proposing", default=None)


@contextmanager
def applying(project_id: str, environment: str) -> Iterator[None]:
    """Lets changes in this environment of the project do without another request."""
    token = _applying.set((project_id, environment))
    try:
        yield
    finally:
        _applying.reset(token)


def is_applied_to(project_id: str, environment: str) -> bool:
    return find_applied_environment(project_id) == environment


def find_applied_environment(project_id: str) -> str:
    """The environment of the project in which approved changes are being made, "" if it is none."""
    project, environment = _applying.get() or ("", "")
    return environment if project == project_id else ""


@contextmanager
def proposing(changes: Sequence[ProposedChange]) -> Iterator[None]:
    """If the gate refuses what is done, these are the changes to request, rather than those of its effect."""
    token = _proposing.set(changes)
    try:
        yield
    finally:
        _proposing.reset(token)


def proposed_changes() -> Sequence[ProposedChange] | None:
    return _proposing.get()
