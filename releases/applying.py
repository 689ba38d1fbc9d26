"""Says which environment's approved changes are being made: they pass the gate."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_applying: ContextVar[tuple[str, str] | None] = ContextVar("applying", default=None)


@contextmanager
def applying(project_id: str, environment: str) -> Iterator[None]:
    """What is changed in this environment of the project needs no other request."""
    token = _applying.set((project_id, environment))
    try:
        yield
    finally:
        _applying.reset(token)


def is_applied_to(project_id: str, environment: str) -> bool:
    return _applying.get() == (project_id, environment)
