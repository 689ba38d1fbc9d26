"""Names stored as text that outlive the named object: in integrations, rules, saved contexts.

Another project, environment or flag may get the name later, and must not inherit the deleted one's settings.
Applications above register their names here.
"""

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, Protocol

from groups.access import Caller

PROJECT, ENVIRONMENT, FLAG = "project", "environment", "flag"


class NameKeeper(Protocol):
    """``kind``: one of the constants. ``names``: a list, or a queryset of names."""

    def list_users(self, kind: str, names: Any, caller: Caller) -> Iterable[str]:
        """The objects that would lose their effect if these were deleted, such as ``Webhook 3``.

        Leaves out those of projects that the caller may not read.
        """

    def end(self, kind: str, names: Any, *, caller: Caller) -> None:
        """Keeps these names from applying to new objects. Called during deletion, after the events."""


_keepers: list[str] = []


def register(module: str) -> None:
    """Registers the name of a module that is a NameKeeper, which is imported at the first deletion."""
    _keepers.append(module)


def _load() -> Iterator[NameKeeper]:
    return map(import_module, _keepers)


def list_users(kind: str, names: Sequence[str], caller: Caller) -> list[str]:
    return [user for keeper in _load() for user in keeper.list_users(kind, names, caller)]


def end_names(kind: str, names: Any, *, caller: Caller) -> None:
    for keeper in _load():
        keeper.end(kind, names, caller=caller)
