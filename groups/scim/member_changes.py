"""Adds and removes members of a group without reading the others."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class MemberChanges:
    """``only``: the members from which the changes start; None: the present ones."""

    only: set[int] | None = None
    added: set[int] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.only is not None or self.added or self.removed)

    def add(self, ids: set[int]) -> None:
        self.added |= ids
        self.removed -= ids

    def remove(self, ids: set[int]) -> None:
        self.removed |= ids
        self.added -= ids

    def replace(self, ids: set[int]) -> None:
        self.only, self.added, self.removed = ids, set(), set()

    def final(self) -> set[int]:
        """Returns all members, if the changes do not start from the present ones."""
        return ((self.only or set()) | self.added) - self.removed
