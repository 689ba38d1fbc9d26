"""The details of a flag's result for the templates, built from `playground.engine.explanation`.

/if-saved/…: who would get a different result if a form were saved. The rest of the path is the form's. This
page processes the form as its own page would, but writes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from flagadmin.core.errors import Conflict, InvalidOperation, NameExists, ValidationError
from flagadmin.core.lists.charts import RolloutBar, VariantBar, make_rollout_bar, make_variant_bar
from groups.access import Caller, Permission
from groups.console import ConsolePage
from playground.comparison.impact import EXAMPLES, MAX_EDITS, MAX_VALUES, TooManyValues, measure_impacts
from playground.engine.chance import ShareOfCalls, compute_drawn_share, find_state_over_calls
from playground.engine.constraints import CompiledConstraint
from playground.engine.evaluator import Evaluation
from playground.engine.explanation import (
    ConstraintExplanation,
    FlagExplanation,
    ParentExplanation,
    StrategyExplanation,
    explain,
)
from playground.engine.flags import CompiledFlag
from playground.engine.outcomes import FlagOutcome, State
from playground.engine.reasons import Reasons
from playground.engine.strategies import CompiledStrategy
from playground.pages.lines import EffectsView, ImpactView, explain_in
from playground.pages.tables import describe_share
from playground.saved_contexts.effects import predict_effects
from projects.console import flag_url
from projects.drafts import DraftingPage, NewFlagEdit, describe_refusal, open_form
from projects.models import StrategyType

MAX_PARENTS = 20
MAX_CONDITIONS = 180  # shown for one flag


@dataclass(frozen=True, slots=True)
class Condition:
    holds: bool
    sentence: str
    need: str


@dataclass(frozen=True, slots=True)
class SegmentDetail:
    name: str
    id: str
    holds: bool
    conditions: list[Condition]
    more_conditions: int


@dataclass(frozen=True, slots=True)
class StrategyDetail:
    number: int
    kind: str
    title: str
    mark: str
    words: str
    sentence: str
    conditions: list[Condition]
    more_conditions: int
    segments: list[SegmentDetail]
    rollout: RolloutBar | None
    variant: VariantBar | None
    edit: str


@dataclass(frozen=True, slots=True)
class ParentDetail:
    """A parent flag. Its own result and reason are set if it is among the evaluated flags."""

    name: str
    met: bool
    sentence: str
    result: str
    reason: str
    share: str


@dataclass(frozen=True, slots=True)
class FlagDetail:
    name: str
    project: str
    environment: str
    result: str
    share: str
    variant_name: str
    reason: str
    parents: list[ParentDetail]
    strategies: list[StrategyDetail]
    more_strategies: int
    more_parents: int
    variant: VariantBar | None


def read_strategy_titles() -> dict[str, str]:
    """The titles of the strategy types, by name. One query."""
    return dict(StrategyType.objects.exclude(title="").values_list("name", "title"))


class FlagDetails:
    """Builds the details of flags in one evaluation, for one caller."""

    def __init__(self, evaluation: Evaluation, titles: Mapping[str, str], caller: Caller, limit: int) -> None:
        """``limit``: the number of conditions to show, divided evenly among the strategies and segments."""
        self.limit = limit
        self.evaluation = evaluation
        self.titles = titles
        self.caller = caller
        self.reasons = Reasons(evaluation)
        self.environment = evaluation.snapshot.environment

    def flag(self, name: str) -> FlagDetail:
        """The details of a flag. Raises KeyError if there is no such flag."""
        explained = explain(self.evaluation, name)
        flag, outcome = self.evaluation.pair(name)
        state, share = find_state_over_calls(self.evaluation, flag, outcome)
        return FlagDetail(
            name=name,
            project=explained.project,
            environment=self.environment,
            result=state.value,
            share="" if share is None else describe_share(share),
            variant_name="" if share is not None else explained.variant_name or "",
            reason=explained.reason,
            parents=[self.parent(parent) for parent in explained.parents[:MAX_PARENTS]],
            more_parents=max(len(explained.parents) - MAX_PARENTS, 0),
            strategies=self.strategies(flag, outcome, explained),
            more_strategies=max(len(explained.strategies) - self.limit, 0),
            variant=make_variant_bar(explained.variant) if explained.variant and share is None else None,
        )

    def parent(self, parent: ParentExplanation) -> ParentDetail:
        result = reason = words = ""
        if parent.name in self.evaluation.snapshot.positions:
            flag, outcome = self.evaluation.pair(parent.name)
            state, share = find_state_over_calls(self.evaluation, flag, outcome)
            result, reason = state.value, self.reasons.flag(flag, outcome)
            words = "" if share is None else describe_share(share)
        return ParentDetail(parent.name, parent.problem is None, parent.sentence, result, reason, words)

    def strategies(
        self, flag: CompiledFlag, outcome: FlagOutcome, explained: FlagExplanation
    ) -> list[StrategyDetail]:
        explained_strategies = zip(flag.strategies, outcome.strategies, explained.strategies, strict=True)
        strategies = list(explained_strategies)[: self.limit]
        lists = sum(1 + len(strategy.segments) for _, _, strategy in strategies)
        most_conditions = max(1, self.limit // max(1, lists))
        return [
            self.strategy(
                number,
                flag,
                compiled,
                strategy,
                compute_drawn_share(self.evaluation, compiled, its_outcome),
                most_conditions,
            )
            for number, (compiled, its_outcome, strategy) in enumerate(strategies, start=1)
        ]

    def strategy(
        self,
        number: int,
        flag: CompiledFlag,
        compiled: CompiledStrategy,
        strategy: StrategyExplanation,
        drawn: ShareOfCalls,
        limit: int,
    ) -> StrategyDetail:
        mark, words = _describe_verdict(strategy, drawn)
        segments = self.evaluation.snapshot.segments
        return StrategyDetail(
            number=number,
            kind=self.titles.get(strategy.name, strategy.name),
            title=strategy.title,
            mark=mark,
            words=words,
            sentence=""
            if strategy.rollout or strategy.constraints or strategy.segments
            else strategy.sentence,
            conditions=_pair_conditions(compiled.constraints, strategy.constraints)[:limit],
            more_conditions=max(len(strategy.constraints) - limit, 0),
            segments=[
                SegmentDetail(
                    segment.name,
                    segment.id,
                    segment.holds,
                    _pair_conditions(segments[position].constraints, segment.constraints)[:limit],
                    max(len(segment.constraints) - limit, 0),
                )
                for position, segment in zip(compiled.segments, strategy.segments, strict=True)
            ],
            rollout=make_rollout_bar(strategy.rollout) if strategy.rollout else None,
            variant=make_variant_bar(strategy.variant) if strategy.variant and strategy.decides else None,
            edit=self.edit_link(flag, strategy.id),
        )

    def edit_link(self, flag: CompiledFlag, strategy_id: str) -> str:
        """The URL for editing the strategy; "" if the caller may not edit it."""
        permission, environment = Permission.UPDATE_FEATURE_STRATEGY, self.environment
        if not self.caller.can(permission, project=flag.project, environment=environment):
            return ""
        query = urlencode({"environmentId": environment, "strategyId": strategy_id})
        return f"{flag_url(flag.project, flag.name, 'strategy-edit')}?{query}"


def _pair_conditions(
    compiled: tuple[CompiledConstraint, ...], explained: tuple[ConstraintExplanation, ...]
) -> list[Condition]:
    """Pairs each constraint with its explanation. ``need`` is empty if the sentence already contains it."""
    return [
        Condition(
            each.holds,
            each.sentence,
            _describe_expected(constraint) if each.holds and not constraint.met else "",
        )
        for constraint, each in zip(compiled, explained, strict=True)
    ]


def _describe_expected(constraint: CompiledConstraint) -> str:
    """Describes the values that the constraint accepts: ``(one of pro, enterprise)``."""
    return f"({constraint.need.removeprefix(', ').removeprefix('needs ')})" if constraint.need else ""


def _describe_verdict(strategy: StrategyExplanation, drawn: ShareOfCalls) -> tuple[str, str]:
    if strategy.disabled:
        return "off", "disabled"
    if drawn is not None and 0 < drawn < 1:
        return "random", describe_share(drawn)
    if strategy.state is State.UNKNOWN:
        return "unknown", "can't tell"
    return ("on", "matched") if strategy.state is State.ON else ("off", "not matched")


DETAILED = 30
"""Examples on the page; the part loaded beside a form has few."""
FORM_ONLY = ("csrfmiddlewaretoken", "do", "left")


class IfSavedPage(ConsolePage):
    """Answers htmx with the part beside the form (`part_name`), other requests with a page that leads back to it."""

    http_method_names = ["post"]
    body_limit = settings.COMPARE_BODY_LIMIT  # a form may have a list of a segment
    template_name = "playground/if_saved.html"
    part_name = "playground/impact.html"
    prefix = "/if-saved"
    title = "Who changes"

    def post(self, request: HttpRequest, form: str) -> HttpResponseBase:
        page = open_form(f"/{form}", request, self.caller)
        beside = "HX-Request" in request.headers
        context = self.compare(page, beside=beside)
        if beside:
            return render(request, self.part_name, context)
        context |= {"breadcrumbs": page.get_breadcrumbs()} | self.way_back(page)
        return self.render_to_response(self.get_context_data(**context))

    def compare(self, page: DraftingPage, *, beside: bool) -> dict[str, Any]:
        """The effects of saving the form, or the reason why it cannot be saved."""
        try:
            edits = page.get_edits()
        except (ValidationError, InvalidOperation, Conflict, NameExists) as error:
            is_invalid = isinstance(error, ValidationError) and error.details
            if is_invalid and page.shown_by == "post":  # the form shows it beside its inputs
                return {"error": error}
            return {"refusals": describe_refusal(error)}
        examples, max_values = (EXAMPLES, MAX_VALUES) if beside else (DETAILED, None)
        try:
            impacts_found = measure_impacts(
                edits, now=timezone.now(), caller=self.caller, examples=examples, most_values=max_values
            )
        except TooManyValues as error:
            return {"refusals": describe_refusal(error)}
        return {
            "edits": edits,
            "caller": self.caller,
            "impacts": [
                ImpactView(
                    impact,
                    is_new=(is_new := isinstance(edit, NewFlagEdit)),
                    explain=None if beside or is_new else explain_in([edit.environment]),
                )
                for impact, edit in zip(impacts_found, edits, strict=False)
            ],
            "several": len(edits) > 1,
            "more": max(0, len(edits) - MAX_EDITS),
            "unchanged": page.unchanged,
            "saved": EffectsView(predict_effects(self.caller, edits), beside=beside),
        }

    def way_back(self, page: DraftingPage) -> dict[str, Any]:
        """The form with the entered values."""
        parameters = self.request.POST
        hidden = [
            (name, text) for name, texts in parameters.lists() for text in texts if name not in FORM_ONLY
        ]
        url = self.request.get_full_path().removeprefix(self.prefix)
        if page.shown_by == "post":
            return {"form_url": url, "kept": hidden}
        return {"back": f"{url.partition('?')[0]}?{urlencode(hidden)}"}
