"""Expectations that are met in one of two states and not in the other."""

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import NamedTuple

from playground.engine.context import PointInTime
from playground.engine.snapshot import Snapshot
from playground.saved_contexts.expectations import Checked, Expectation, check_against


class ChangedExpectation(NamedTuple):
    """An expectation that is met before and not after, or the other way around, with the reasons."""

    before: Checked
    after: Checked

    @property
    def is_broken(self) -> bool:
        return self.before.met

    @property
    def sentence(self) -> str:
        """`checkout-redesign: on → off in production, expected on. 100 % rollout → The flag is off`."""
        expectation = self.after.expectation
        return (
            f"{expectation.flag}: {self.before.actual} → {self.after.actual} in {expectation.environment}, "
            f"expected {expectation.words}. {self.before.reason} → {self.after.reason}"
        )


def compare_expectations(
    expectations: Sequence[Expectation],
    before: Mapping[str, Snapshot],
    after: Mapping[str, Snapshot],
    *,
    now: PointInTime,
) -> list[ChangedExpectation]:
    """Compares two states, each a snapshot by environment. Only the reasons of what changes are put into words."""
    if not expectations:
        return []
    states = (before, after)
    old, new = (check_against(expectations, state, now=now, reasons=False) for state in states)
    changed = list(
        compress(
            expectations,
            (is_before.met != is_after.met for is_before, is_after in zip(old, new, strict=True)),
        )
    )
    with_reasons = (check_against(changed, state, now=now) for state in states)
    return [ChangedExpectation(*pair) for pair in zip(*with_reasons, strict=True)]
