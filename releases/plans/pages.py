"""Console pages of release plans: one plan, the confirmation of a step, a new one, and the list of all.

/in-steps/…: who changes at each step, if a strategy were saved in steps. The rest of the path is its form.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.utils import timezone

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.errors import AppError, NoAccess, NotFound, ValidationError
from flagadmin.core.lists.filters import read_zone
from flagadmin.core.lists.pages import Column, Filter, curl_for
from groups.console import ActionPage, Breadcrumbs, ConfirmPage, ConsolePage, ListPage, SubmitPage
from playground.engine.definitions import StrategyDefinition
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT
from playground.pages.flag_detail import IfSavedPage
from playground.pages.lines import Count, count_looks
from projects.access import access_flag, find_project_environment
from projects.console import api_path, flag_url, get_flag_breadcrumbs
from projects.definitions import Definitions, read_definitions
from projects.drafts import Draft, DraftingPage, FlagEdit
from projects.models import Project
from projects.projects.required_comments import requires_comment
from projects.states import get_content
from releases.models import Milestone, ReleasePlan
from releases.plans import actions
from releases.plans.actions import check_rollouts
from releases.plans.add import NOT_IN_STEPS, add_plan
from releases.plans.forms import INTERVALS, WINDOWS, read_rollouts, read_transition
from releases.plans.picture import draw_steps
from releases.plans.queries import OfFlagPath, find_milestone, readable_plans, running_plans
from releases.plans.steps import find_opening, measure_start
from releases.plans.view import PlanView
from releases.requests.impact import Measured, add_near, measure_difference
from releases.safeguards.actions import remove_safeguard, set_safeguard
from releases.safeguards.forms import read_safeguard
from releases.templates.queries import list_templates

State = ReleasePlan.State


class OnPlan(ConsolePage):
    """A base for URLs below a plan. Raises NotFound."""

    @property
    def view(self) -> PlanView:
        where = self.kwargs
        flag = access_flag(self.caller, where["project_id"], where["name"])
        plans = ReleasePlan.objects.filter(flag=flag).select_related("flag", "active")
        plans = plans.prefetch_related("milestones", "safeguards")
        key = where["plan_id"]
        plan = get_or_404(plans, f"{flag.name} has no release plan {key}.", pk=key)
        return PlanView(plan, self.caller)

    def get_breadcrumbs(self) -> Breadcrumbs:
        view = self.view
        # Only the flag's breadcrumb: all of them would not fit in one line on a phone.
        return (*get_flag_breadcrumbs(view.plan.flag)[-1:], ("Release plan", view.url))


class PlanPage(OnPlan):
    """All milestones with their strategies, the condition of the next one, and the safeguards."""

    title = "Release plan of {name}"
    template_name = "plans/plan.html"

    def get_breadcrumbs(self) -> Breadcrumbs:
        return get_flag_breadcrumbs(self.view.plan.flag)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        view = self.view
        return super().get_context_data(
            view=view,
            intervals=INTERVALS,
            windows=WINDOWS,
            **kwargs,
        )

    def get_curl(self) -> str:
        flag_path = self.view.flag_path
        path = f"{api_path(flag_path.project, flag_path.feature)}/environments/{flag_path.environment}/release-plans"
        return curl_for(self.request, "GET", f"{path}/{self.kwargs['plan_id']}")


class PlanAction(ActionPage, OnPlan):
    def get_success_url(self) -> str:
        return self.view.url


class PausePlan(PlanAction):
    def act(self) -> str:
        reason = self.request.POST.get("comment", "").strip()
        actions.pause_plan(self.view.flag_path, self.kwargs["plan_id"], reason=reason, caller=self.caller)
        return "Paused the release plan."


class SetSafeguard(PlanAction):
    def act(self) -> str:
        plan = self.kwargs["plan_id"]
        if removed := self.request.POST.get("remove"):
            remove_safeguard(self.view.flag_path, plan, removed, caller=self.caller)
            return "Removed the safeguard."
        set_safeguard(self.view.flag_path, plan, read_safeguard(self.request.POST), caller=self.caller)
        return "Added the safeguard."


class SetTransition(PlanAction):
    """Sets the condition of the milestone after the one in the URL."""

    def act(self) -> str:
        view, key = self.view, self.kwargs["milestone_id"]
        transition = read_transition(self.request.POST, find_milestone(view.plan, key).transition)
        actions.set_transition(view.flag_path, key, transition, caller=self.caller)
        return "Saved when the next milestone starts."


class AskPlan(ConfirmPage, OnPlan):
    """Confirms a step, and shows who changes. ``verb`` is start, back, off, resume or remove."""

    template_name = "plans/ask.html"

    def get_title(self) -> str:
        return self.question()[0]

    def question(self) -> tuple[str, str, Milestone | None]:
        """Returns the question, the label of the button, and the milestone that would start. Raises NotFound."""
        view, verb = self.view, self.kwargs["verb"]
        plan, following, preceding = view.plan, view.following, view.preceding
        if verb == "start" and following is not None:
            return f"Start {following.name} in {plan.environment_id}?", f"Start {following.name}", following
        if verb == "back" and preceding is not None:
            return f"Step back to {preceding.name}?", f"Step back to {preceding.name}", preceding
        if verb == "off":
            return f"Turn {plan.flag.name} off in {plan.environment_id}?", "Turn off", None
        if verb == "resume" and plan.state == State.PAUSED:
            return "Go on with the release plan?", "Go on", None
        if verb == "remove":
            return "Remove the release plan?", "Remove release plan", None
        raise NotFound(f"Release plan {plan.name} cannot do that now.")

    def plan(self) -> dict[str, Any]:
        view = self.view
        if not view.may_change:
            raise NoAccess("You may not change strategies there.")
        _, button, milestone = self.question()
        impact, counts, problem = None, [], None
        if milestone is not None:
            try:
                measured = measure_start(view.plan, milestone, now=timezone.now())
                impact, counts = measured.document(), count_looks(measured.who.people)
            except AppError as error:
                problem = error
        flag_path = view.flag_path
        return {
            "view": view,
            "verb": self.kwargs["verb"],
            "button": button,
            "milestone": milestone,
            "impact": impact,
            "counts": counts,
            "problem": problem,
            "cancel": flag_url(flag_path.project, flag_path.feature),
            "comment_required": requires_comment([flag_path.project], [flag_path.environment]),
        }

    def act(self) -> tuple[str, str]:
        view, verb = self.view, self.kwargs["verb"]
        flag_path, key, caller = view.flag_path, view.plan.pk, self.caller
        _, _, milestone = self.question()
        done = flag_url(flag_path.project, flag_path.feature)
        if verb == "start" and milestone is not None:
            actions.start_milestone(flag_path, key, milestone.pk, caller=caller)
            return f"Started {milestone.name}.", done
        if verb == "back":
            actions.step_back(flag_path, key, caller=caller)
            return "Stepped back. The plan is paused.", done
        if verb == "off":
            actions.turn_off(flag_path, key, caller=caller)
            return f"Turned {flag_path.feature} off. The plan is paused.", done
        if verb == "resume":
            actions.resume_plan(flag_path, key, caller=caller)
            return "The release plan goes on.", done
        keep = "keep" in self.request.POST
        actions.remove_plan(flag_path, key, keep_strategies=keep, caller=caller)
        return "Removed the release plan.", done


class NewPlanPage(OfFlagPath, SubmitPage):
    """A plan from a template. The page of a strategy adds one with steps of its own."""

    title = "Release plan in {environment}"
    template_name = "plans/new.html"

    def get_breadcrumbs(self) -> Breadcrumbs:
        return get_flag_breadcrumbs(self.flag)

    def find(self) -> None:
        flag_path = self.flag_path
        self.flag = access_flag(self.caller, flag_path.project, flag_path.feature, archived=False)
        find_project_environment(flag_path.project, flag_path.environment)

    def submit(self) -> str:
        plan = add_plan(self.flag_path, self.request.POST.get("template", ""), caller=self.caller)
        return PlanView(plan, self.caller).url_of("plan-ask", "start")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        templates = list_templates(self.caller, None, self.flag_path.project)
        return super().get_context_data(flag=self.flag, templates=templates, **kwargs)


class PlansPage(ListPage):
    """Running and paused plans, and with ``?state=`` others."""

    title = "Release plans"
    lead = "Flags that are rolled out in steps."
    noun = "release plan,release plans"
    none_yet = "No release plans. Start one on a flag: Roll out, then “In steps”."
    default_sort = "flag"
    columns = (
        Column(
            "flag",
            "Flag",
            by=("flag__name", "environment"),
            link='{% url "flag" row.flag.project_id row.flag.name %}',
            below="flag.project.name",
        ),
        Column("environment", "Environment", by=("environment", "flag__name"), value="environment_id"),
        Column("plan", "Plan", by=("name",), link="{{ row.page_url }}"),
        Column(
            "step",
            "Step",
            value="active.name",
            cell='{{ row.active.name }} <span class="muted">· {{ row.step_number }} of {{ row.step_count }}</span>',
            none="none",
        ),
        Column(
            "state",
            "State",
            by=("state", "flag__name"),
            cell='{% include "plans/state.html" with plan=row %}',
        ),
        Column("since", "Since", by=("since",), shown="ago", none="never"),
    )

    def get_filters(self) -> Sequence[Filter]:
        states = [("", "Running or paused"), *((state.value, state.label) for state in State)]
        return (
            Filter("q", "Flag or plan", by=("flag__name", "name")),
            Filter("state", "State", options=states),
        )

    def get_rows(self, values: dict[str, str]) -> QuerySet[ReleasePlan]:
        state = values["state"]
        plans = readable_plans(self.caller).filter(state=state) if state else running_plans(self.caller)
        return plans.select_related("flag__project", "active").prefetch_related("milestones").order_by()

    def complete(self, rows: list[Any]) -> list[Any]:
        for plan in rows:
            view = PlanView(plan, self.caller)
            plan.page_url, plan.step_number, plan.step_count = view.url, view.number, len(view.milestones)
        return rows


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
