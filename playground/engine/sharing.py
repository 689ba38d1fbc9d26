"""Lets equal values of a compilation share their memory: most names, weights and texts of a flag recur in others."""

from __future__ import annotations

from collections.abc import Hashable
from sys import getsizeof
from typing import Any, TypeVar

T = TypeVar("T", bound=Hashable)


class Shared:
    """Keeps the first of equal values. Called with a value, it returns the kept one.

    `nbytes` is the memory of the kept values. The members of a tuple count only if they are shared themselves.
    """

    __slots__ = ("_known", "nbytes")

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}
        self.nbytes = 0

    def __call__(self, value: T) -> T:
        known: T | None = self._known.get(value)
        if known is None:
            known = self._known[value] = value
            self.nbytes += getsizeof(value)
        return known
