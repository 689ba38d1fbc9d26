"""Measures which users change at each step, if a form were saved in steps. It only reads."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.errors import ValidationError
from playground.engine.definitions import StrategyDefinition
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT
from playground.pages.lines import Count, count_looks
from projects.definitions import Definitions, read_definitions
from projects.drafts import Draft, FlagEdit
from releases.plans.in_steps import NOT_IN_STEPS
from releases.plans.timing import find_opening
from releases.requests.impact import Measured, add_near, measure_difference


class ForeseenStep(NamedTuple):
    """``at``: when it is taken at the earliest, None for the first one. ``measured`` compares with the step before."""

    flag: str
    rollout: int
    at: datetime | None
    measured: Measured

    @property
    def counts(self) -> Sequence[Count]:
        """The changes of the flag itself, without those that depend on it."""
        return [
            look
            for flag in self.measured.who.flags
            if flag.name == self.flag
            for look in count_looks(flag.counts)
        ]

    @property
    def broken(self) -> int:
        """The expectations that it breaks."""
        return len(self.measured.effects.broken)


def foresee_steps(
    edit: FlagEdit, rollouts: Sequence[int], transition: Mapping[str, Any] | None, *, now: datetime
) -> Iterator[ForeseenStep]:
    """Raises ValidationError if the edit changes anything but one strategy with a share of users."""
    stored = read_near(edit)
    before, at = stored, now
    for number, rollout in enumerate(rollouts):
        after = _with_share(edit, stored, rollout).apply_to(stored)
        if number and transition is not None:
            at = find_opening(transition, at)
        measured = measure_difference(edit.environment, before, after, now=now)
        yield ForeseenStep(edit.flag, rollout, at if number else None, measured)
        before = after


def read_near(edit: FlagEdit) -> Definitions:
    segments = set(edit.draft.used_segments())
    with consistent_reads():
        return read_definitions(
            [edit.project], edit.environment, flags=add_near({edit.flag}), segments=segments
        )


def _with_share(edit: FlagEdit, stored: Definitions, rollout: int) -> Draft:
    """The edit, but with another share for the one strategy that it changes or adds."""
    strategies: Sequence[StrategyDefinition] = edit.draft.changes.get("strategies", ())
    known = [each for flag in stored.flags if flag["name"] == edit.flag for each in flag["strategies"]]
    changed = [strategy for strategy in strategies if strategy not in known]
    if len(changed) != 1 or changed[0]["name"] != FLEXIBLE_ROLLOUT:
        raise ValidationError(NOT_IN_STEPS)
    taken = {**changed[0], "parameters": {**changed[0]["parameters"], "rollout": str(rollout)}}
    return replace(
        edit.draft,
        changes={"strategies": [taken if each is changed[0] else each for each in strategies]},
    )
