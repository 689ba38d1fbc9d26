"""A flag in each environment of its project, as cards of its page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from flagadmin.core.document import Document
from flagadmin.core.lists.charts import format_percent
from groups.access import Caller, Permission
from projects.console import flag_url
from projects.flags.insights.evaluations import Evaluations, read_last_evaluations
from projects.flags.lists.cells import Cell, read_flag_cells
from projects.flags.lists.rows import Toggle, toggle_of
from projects.flags.lists.strategy_lines import Palette, Share, StrategyLine, make_strategy_lines
from projects.models import Environment, Flag, Segment
from projects.states import has_enabled
from projects.strategies.sentences import MAX_LISTED

MAX_STRATEGIES = 30  # in all environments; above this, each environment shows only its first few
FIRST_STRATEGIES = 3
FEW_CONDITIONS = 3  # of each strategy, if there are more than MAX_STRATEGIES
MANY_STRATEGIES = 10  # an environment with more lists one condition of each
MAX_OPEN = 6  # environments shown in full; the others are one line each
MAX_VARIANTS = 20  # of each comparison; the others are summed up
EVERYONE = 100.0
MAX_SPLITS = 3  # environments whose variants are compared with the measured ones


@dataclass(frozen=True, slots=True)
class FlagInEnvironment:
    """A card. ``is_open``: its strategies and chart are shown; not where one strategy turns it on for everyone outside
    production. ``warning``: a state that its switch does not show."""

    name: str
    production: bool
    cell: Cell
    switch: Toggle
    is_open: bool
    strategies: Sequence[StrategyLine]
    total: int
    order: str
    warning: str
    variants: Sequence[Share]
    evaluations: Evaluations
    last_evaluated: datetime | None
    focus: str
    new_strategy: str
    edit_variants: str
    default_strategy: str
    may_change: bool

    @property
    def more_strategies(self) -> int:
        return self.total - len(self.strategies)

    @property
    def percent_on(self) -> str:
        on = self.evaluations.percent_on
        return "" if on is None else format_percent(on)


@dataclass(frozen=True, slots=True)
class Split:
    """The variants in an environment: weights as configured, and how often SDKs reported each."""

    environment: str
    weights: Mapping[str, float]
    measured: Mapping[str, int]


def make_environment_cards(
    flag: Flag, document: Document, evaluations: Mapping[str, Evaluations], *, focus: str, caller: Caller
) -> Iterator[FlagInEnvironment]:
    """The cards in the order of the project's environments; ``focus`` is shown in full."""
    segments = dict(Segment.objects.usable_in(flag.project_id).values_list("id", "name"))
    seen, palette = read_last_evaluations([flag.pk])[flag.pk], Palette()
    [row] = read_flag_cells([flag])
    cells = {cell.environment: cell for cell in row.cells}
    are_few = sum(len(state["strategies"]) for state in document["environments"]) <= MAX_STRATEGIES
    for index, place in enumerate(document["environments"]):
        name, strategies = place["name"], place["strategies"]
        query, may = urlencode({"environmentId": name}), _may(caller, flag, name)
        edit = f"{flag_url(flag.project_id, flag.name, 'strategy-edit')}?{query}"
        conditions = MAX_LISTED if are_few else FEW_CONDITIONS if len(strategies) <= MANY_STRATEGIES else 1
        lines = make_strategy_lines(strategies, segments, palette, edit, limit=conditions)
        limit = len(strategies) if are_few or focus == name else 1 if focus else FIRST_STRATEGIES
        is_plain = len(strategies) == 1 and not (
            place["variants"] or strategies[0]["variants"] or strategies[0]["title"]
        )
        is_folded = is_plain and cells[name].share == EVERYONE and place["type"] != Environment.PRODUCTION
        is_open = focus == name or (index < MAX_OPEN and not is_folded)
        yield FlagInEnvironment(
            name=name,
            production=place["type"] == Environment.PRODUCTION,
            cell=cells[name],
            switch=toggle_of(flag, place, caller=caller),
            is_open=is_open,
            strategies=list(islice(lines, limit)) if is_open else [],
            total=len(strategies),
            order=",".join(strategy["id"] for strategy in strategies),
            warning=_find_warning(place),
            variants=palette.shares(place["variants"]),
            evaluations=evaluations[name],
            last_evaluated=seen.get(name),
            focus=urlencode({"environment": name}),
            new_strategy=f"{flag_url(flag.project_id, flag.name, 'strategy-new')}?{query}"
            if may(Permission.CREATE_FEATURE_STRATEGY)
            else "",
            edit_variants=f"{flag_url(flag.project_id, flag.name, 'flag-variants')}?{query}"
            if may(Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS)
            else "",
            default_strategy=reverse("default-strategy", args=[flag.project_id, name]),
            may_change=may(Permission.UPDATE_FEATURE_STRATEGY),
        )


def _may(caller: Caller, flag: Flag, environment: str) -> Any:
    def may(permission: Permission) -> bool:
        return not flag.is_archived and caller.can(
            permission, project=flag.project_id, environment=environment
        )

    return may


def _find_warning(state: Document) -> str:
    if state["enabled"] and not state["strategies"]:
        return "Enabled without a strategy: on for everyone."
    if state["enabled"] and not has_enabled(state["strategies"]):
        return "All strategies are disabled: off for everyone."
    return ""


def make_splits(document: Document, evaluations: Mapping[str, Evaluations]) -> list[Split]:
    """The environments with variants, those with the most evaluations first."""
    splits = [
        Split(place["name"], _read_weights(place), evaluations[place["name"]].variants)
        for place in document["environments"]
        if place["variants"] or any(strategy["variants"] for strategy in place["strategies"])
    ]
    largest = sorted(splits, key=lambda split: -sum(split.measured.values()))[:MAX_SPLITS]
    return [_limit_split(split) for split in largest]


def _limit_split(split: Split) -> Split:
    """Limits a split to the largest variants, and one line for the others."""
    names = sorted(
        split.weights.keys() | split.measured.keys(),
        key=lambda name: (-split.measured.get(name, 0), -split.weights.get(name, 0), name),
    )
    largest, others = set(names[:MAX_VARIANTS]), names[MAX_VARIANTS:]
    if len(others) < 2:
        return split
    line = f"{len(others):,} others"

    def merge_small(numbers: Mapping[str, Any]) -> dict[str, Any]:
        shown = {name: number for name, number in numbers.items() if name in largest}
        left = sum(numbers.get(name, 0) for name in others)
        return {**shown, line: left} if left else shown

    return Split(split.environment, merge_small(split.weights), merge_small(split.measured))


def _read_weights(state: Document) -> dict[str, float]:
    """The weights by name if all enabled strategies agree; empty if they differ."""
    counted = [strategy for strategy in state["strategies"] if not strategy["disabled"]]
    lists = [strategy["variants"] or state["variants"] for strategy in counted] or [state["variants"]]
    weights = [{variant["name"]: variant["weight"] for variant in variants} for variants in lists]
    return weights[0] if all(weights_of_strategy == weights[0] for weights_of_strategy in weights) else {}
