"""Compares the effect that was approved with the present one: only what was approved is applied."""

from collections.abc import Iterator
from typing import NamedTuple

from flagadmin.core.document import Document
from playground.comparison.compare import COUNTED
from releases.models import ChangeRequest

MAX_POINTS = 1.0
"""Percentage points of the generated users. Rollouts of two states never count exactly the same ones."""


class Figure(NamedTuple):
    """A line of the comparison: what was approved, and what is so now."""

    name: str
    before: str
    after: str
    moved: bool

    @property
    def sentence(self) -> str:
        return f"{self.name}: {self.before} when it was approved, {self.after} now."


def compare_impacts(before: Document, after: Document) -> list[Figure]:
    old, new = before["counts"], after["counts"]
    lines = [_users("Users who change", before["changed"], after["changed"], before, after)]
    lines += [
        _users(kind.words, old.get(kind.value, 0), new.get(kind.value, 0), before, after)
        for kind in COUNTED
        if kind.value in old or kind.value in new
    ]
    then, now = ({saved["id"] for saved in impact["savedContexts"]} for impact in (before, after))
    lines.append(Figure("Saved contexts", _names(before), _names(after), then != now))
    broken = before["brokenExpectations"], after["brokenExpectations"]
    lines.append(Figure("Expectations broken", f"{broken[0]}", f"{broken[1]}", broken[0] != broken[1]))
    return lines


def _users(name: str, old: int, new: int, before: Document, after: Document) -> Figure:
    then, now = 100 * old / max(1, before["users"]), 100 * new / max(1, after["users"])
    return Figure(name, f"{then:.3g} %", f"{now:.3g} %", abs(now - then) > MAX_POINTS)


def _names(impact: Document) -> str:
    return ", ".join(saved["name"] for saved in impact["savedContexts"]) or "none"


def find_moves(before: Document | None, after: Document | None) -> list[str]:
    """Finds why what was approved is not what would be applied, [] if it is. None: it could not be measured."""
    if after is None:
        return []
    if before is None:
        return ["Who changes could not be measured when it was approved."]
    return [line.sentence for line in compare_impacts(before, after) if line.moved]


def approved_impacts(request: ChangeRequest) -> Iterator[Document | None]:
    """Yields the impacts seen by those who approved it, the first one first; without any, what its author sent."""
    approvals = [review.impact for review in request.reviews.all() if review.approved]
    yield from approvals or [request.impact]


def find_moved(request: ChangeRequest, impact: Document | None) -> tuple[Document | None, list[str]]:
    """The first of what was approved that is no longer so, and why; or no reason."""
    for approved in approved_impacts(request):
        if reasons := find_moves(approved, impact):
            return approved, reasons
    return None, []
