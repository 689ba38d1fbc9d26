"""Release plans for pages: their progress, next step and possible actions."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property

from groups.access import Caller
from projects.models import Segment
from projects.strategies.sentences import Summary, summarize_strategy
from releases.models import Milestone, ReleasePlan
from releases.plans.approval import explain_moved
from releases.plans.progress import UPDATE, Step, find_step, say_transition
from releases.plans.queries import find_following, find_preceding, get_flag_path
from releases.plans.steps import find_opening
from releases.safeguards.chart import Chart, draw_chart
from releases.safeguards.judge import Judge, Verdict, find_breach

State = ReleasePlan.State


class Station(NamedTuple):
    """A milestone on the line. ``at``: its start, or its earliest start. ``is_past``: it was passed."""

    milestone: Milestone
    at: datetime | None
    is_past: bool
    is_active: bool
    summaries: Sequence[Summary]

    @property
    def transition(self) -> str:
        return say_transition(self.milestone.transition)


class PlanView:
    """Reads its data on access."""

    template = "plans/of_flag.html"
    card_template = "plans/next.html"
    buttons_template = "plans/buttons.html"

    def __init__(self, plan: ReleasePlan, caller: Caller) -> None:
        self.plan = plan
        self.flag_path = get_flag_path(plan)
        self.may_change = (
            caller.can(UPDATE, project=self.flag_path.project, environment=self.flag_path.environment)
            and not plan.flag.is_archived
        )

    @cached_property
    def milestones(self) -> list[Milestone]:
        return list(self.plan.milestones.all())

    @cached_property
    def following(self) -> Milestone | None:
        return find_following(self.plan)

    @cached_property
    def preceding(self) -> Milestone | None:
        return find_preceding(self.plan)

    @property
    def number(self) -> int:
        """The number of the active milestone, from 1."""
        return 0 if self.plan.active is None else self.milestones.index(self.plan.active) + 1

    @property
    def opens(self) -> datetime | None:
        """The earliest start of the next milestone of a running plan, regardless of other conditions."""
        plan, active = self.plan, self.plan.active
        if plan.state != State.RUNNING or plan.since is None or active is None or not active.transition:
            return None
        return find_opening(active.transition, plan.since)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        return Judge(timezone.now()).judge(self.plan)

    @cached_property
    def step(self) -> Step | None:
        """The next step of a started, unfinished plan."""
        if self.plan.active is None or self.plan.state == State.DONE:
            return None
        return find_step(self.plan, self.verdicts, timezone.now())

    @cached_property
    def held(self) -> str:
        """Why the next step of a started plan needs another approval; "" if it does not."""
        following = self.following
        return explain_moved(self.plan, following) if following and self.plan.active else ""

    @cached_property
    def stations(self) -> list[Station]:
        return list(self._stations())

    def _stations(self) -> Iterator[Station]:
        names = Segment.objects.names(self._segments())
        opens: datetime | None = None
        for milestone in self.milestones:
            is_active = milestone.pk == self.plan.active_id
            is_past = self.plan.active is not None and milestone.place < self.plan.active.place
            at = milestone.started_at if is_past or is_active else opens
            if is_active:
                opens = self.plan.since
            opens = find_opening(milestone.transition, opens) if opens and milestone.transition else None
            summaries = [summarize_strategy(strategy, segments=names) for strategy in milestone.strategies]
            yield Station(milestone, at, is_past, is_active, summaries)

    def _segments(self) -> set[int]:
        strategies = [strategy for milestone in self.milestones for strategy in milestone.strategies]
        return {key for strategy in strategies for key in strategy["segments"]}

    @cached_property
    def charts(self) -> list[Chart]:
        """The charts of safeguards on impact metrics, since the plan was started."""
        if self.plan.active is None:
            return []
        charts = (
            draw_chart(self.plan, safeguard, timezone.now()) for safeguard in self.plan.safeguards.all()
        )
        return [chart for chart in charts if chart is not None]

    @property
    def is_breached(self) -> bool:
        return find_breach(self.verdicts) is not None

    @property
    def url(self) -> str:
        return self.url_of("plan")

    def url_of(self, page: str, *args: str) -> str:
        return reverse(page, args=[self.flag_path.project, self.flag_path.feature, self.plan.pk, *args])

    @property
    def urls(self) -> dict[str, str]:
        verbs = {verb: self.url_of("plan-ask", verb) for verb in ("start", "back", "off", "resume", "remove")}
        return verbs | {"pause": self.url_of("plan-pause"), "safeguard": self.url_of("plan-safeguard")}
