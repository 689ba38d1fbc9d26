"""/in-steps/…: who changes at each step, if a strategy were saved in steps. The rest of the path is its form."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from django.utils import timezone

from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.errors import AppError, NoAccess, NotFound, ValidationError
from flagadmin.core.lists.days import read_zone
from playground.engine.definitions import StrategyDefinition
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT
from playground.pages.if_saved import IfSavedPage
from playground.pages.lines import Count, count_looks
from projects.definitions import Definitions, read_definitions
from projects.drafting import DraftingPage
from projects.drafts import Draft, FlagEdit
from projects.models import Project
from projects.states import get_content
from releases.plans.add import NOT_IN_STEPS
from releases.plans.forms import read_rollouts, read_transition
from releases.plans.picture import draw_steps
from releases.plans.rules import check_rollouts
from releases.plans.steps import find_opening
from releases.requests.impact import Measured, add_near, measure_difference


class InStepsPage(IfSavedPage):
    template_name = "plans/if_in_steps.html"
    part_name = "plans/foreseen.html"
    prefix = "/in-steps"
    title = "Who changes at each step"

    def compare(self, page: DraftingPage, *, beside: bool) -> dict[str, Any]:
        post = self.request.POST
        try:
            edits = page.get_edits()
            rollouts, transition = read_rollouts(post.get("rollouts", "")), read_transition(post)
            check_rollouts(rollouts)
            if len(edits) != 1 or not isinstance(edits[0], FlagEdit):
                raise ValidationError(NOT_IN_STEPS)
            steps = list(foresee_steps(edits[0], rollouts, transition, now=timezone.now()))
        except (NoAccess, NotFound):
            raise
        except AppError as error:
            return {"refusals": [problem.message for problem in error.details] or [error.message]}
        refusing = Project.objects.filter(pk=edits[0].project, refuse_broken_expectations=True)
        picture = draw_steps(
            [(step.rollout, step.at) for step in steps],
            transition,
            now=timezone.now(),
            zone=read_zone(self.request),
        )
        return {"foreseen": steps, "picture": picture, "refuses_broken": refusing.exists()}


class ForeseenStep(NamedTuple):
    """``at``: its earliest time, None for the first one. ``measured`` compares with the previous step."""

    flag: str
    rollout: int
    at: datetime | None
    measured: Measured

    @property
    def counts(self) -> Sequence[Count]:
        """The changes of the flag itself, without its dependents."""
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
    """Predicts the steps. Raises ValidationError unless the edit changes only one strategy with a percentage."""
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
    """The edit with another percentage for its one changed or added strategy."""
    strategies: Sequence[StrategyDefinition] = edit.draft.changes.get("strategies", ())
    known = [each for flag in stored.flags if flag["name"] == edit.flag for each in flag["strategies"]]
    changed = [strategy for strategy in strategies if strategy not in known]
    if len(changed) > 1:  # a copy of the old strategy stays for everyone else
        kept = [get_content(strategy) for strategy in known]
        changed = [strategy for strategy in changed if get_content(strategy) not in kept]
    if len(changed) != 1 or changed[0]["name"] != FLEXIBLE_ROLLOUT:
        raise ValidationError(NOT_IN_STEPS)
    taken = {**changed[0], "parameters": {**changed[0]["parameters"], "rollout": str(rollout)}}
    return replace(
        edit.draft,
        changes={"strategies": [taken if each is changed[0] else each for each in strategies]},
    )
