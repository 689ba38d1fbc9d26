"""What an environment would answer once changes are made, without making them: no lock is taken, nothing is written."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

from flagadmin.core.errors import NotFound, Problem
from flagadmin.core.unreadable_values import check_values
from playground.engine.definitions import FlagDefinition, StrategyDefinition
from projects.definitions import Definitions
from projects.flags.dependencies.rules import make_dependency
from projects.flags.environments.actions import plan_added_strategy
from projects.limits import Limits
from projects.models import Flag, ProjectEnvironment
from projects.strategies.actions import order_problems
from projects.strategies.constraint_rules import make_constraint
from projects.strategies.known_names import load_known_names
from projects.strategies.rules import StrategyDefaults, merge_strategy, plan_strategy
from projects.strategies.variant_rules import make_variants, variants_problems

Payload = Any
Draft = Callable[["Predicted", str, Payload], None]
"""Makes a change of a flag, or of a segment without one. Raises NotFound, ValidationError."""


class Predicted:
    """Stored flags of an environment of a project, and what changes make of them, one after the other."""

    def __init__(self, place: ProjectEnvironment, stored: Definitions) -> None:
        self.place = place
        self.flags: dict[str, FlagDefinition] = {flag["name"]: flag for flag in stored.flags}
        self.segments = dict(stored.segments)
        self.known_names = load_known_names(place.project_id)
        self.limits = Limits.from_settings()

    def copy(self) -> "Predicted":
        copied = copy(self)
        copied.flags, copied.segments = dict(self.flags), dict(self.segments)
        return copied

    def definitions(self) -> Definitions:
        return Definitions(list(self.flags.values()), self.segments)

    def flag(self, name: str) -> FlagDefinition:
        if name not in self.flags:
            raise NotFound(f"Flag {name} not found in project {self.place.project_id}.")
        return self.flags[name]

    def edit(self, name: str, **members: Any) -> None:
        edited: Any = {**self.flag(name), **members}
        self.flags[name] = edited

    def strategy(self, name: str, strategy_id: str) -> StrategyDefinition:
        for strategy in self.flag(name)["strategies"]:
            if strategy["id"] == strategy_id:
                return strategy
        raise NotFound(f"{name} has no strategy {strategy_id} in {self.place.environment_id}.")

    def set_strategies(self, name: str, strategies: Sequence[StrategyDefinition]) -> None:
        """In their order. A flag that loses its last enabled strategy is turned off."""
        ordered = sorted(strategies, key=_place)
        enabled = self.flag(name)["enabled"] and not _all_disabled(ordered)
        self.edit(name, strategies=ordered, enabled=enabled)

    def plan(
        self, name: str, values: Mapping[str, Any], stored: StrategyDefinition | None = None
    ) -> StrategyDefinition:
        """A strategy as it would be stored: the last one, if it is new and has no place."""
        document, problems = plan_strategy(
            values,
            "",
            defaults=StrategyDefaults(flag=name, stickiness=self.place.project.default_stickiness),
            known_names=self.known_names,
            limits=self.limits,
            stored_variants=stored["variants"] if stored else (),
        )
        check_values(problems)
        if document["sortOrder"] is None:
            document["sortOrder"] = stored["sortOrder"] if stored else self._next_place(name)
        document["id"] = stored["id"] if stored else ""
        return document

    def _next_place(self, name: str) -> int:
        places = [_place(strategy) for strategy in self.flag(name)["strategies"]]
        return max(places) + 1 if places else 0


def _place(strategy: StrategyDefinition) -> int:
    return strategy["sortOrder"] or 0


def _all_disabled(strategies: Sequence[StrategyDefinition]) -> bool:
    return all(strategy["disabled"] for strategy in strategies)


def switch(state: Predicted, name: str, payload: Payload) -> None:
    strategies = state.flag(name)["strategies"]
    if payload["enabled"] and _all_disabled(strategies):
        if strategies and payload.get("shouldActivateDisabledStrategies"):
            strategies = [{**strategy, "disabled": False} for strategy in strategies]
        else:
            added: Any = plan_added_strategy(Flag(name=name), state.place)
            strategies = [*strategies, state.plan(name, added)]
    state.edit(name, strategies=strategies, enabled=payload["enabled"])


def add_strategy(state: Predicted, name: str, payload: Payload) -> None:
    added = [*state.flag(name)["strategies"], state.plan(name, payload)]
    state.edit(name, strategies=sorted(added, key=_place))


def update_strategy(state: Predicted, name: str, payload: Payload) -> None:
    stored = state.strategy(name, payload["id"])
    edited = state.plan(name, merge_strategy(stored, payload), stored)
    others = state.flag(name)["strategies"]
    state.set_strategies(name, [edited if each is stored else each for each in others])


def remove_strategy(state: Predicted, name: str, payload: Payload) -> None:
    removed = state.strategy(name, payload["id"])
    state.set_strategies(name, [each for each in state.flag(name)["strategies"] if each is not removed])


def order_strategies(state: Predicted, name: str, payload: Payload) -> None:
    strategies: dict[str, Any] = {each["id"]: each for each in state.flag(name)["strategies"]}
    ids = [place["id"] for place in payload]
    problems: list[Problem] = list(
        order_problems(Flag(name=name), state.place.environment_id, ids, strategies)
    )
    check_values(problems)
    for place in payload:
        strategies[place["id"]] = {**strategies[place["id"]], "sortOrder": place["sortOrder"]}
    ordered = sorted(strategies.values(), key=lambda each: (_place(each), each["id"]))
    state.edit(name, strategies=ordered)


def set_variants(state: Predicted, name: str, payload: Payload) -> None:
    check_values(list(variants_problems(payload["variants"], "")))
    state.edit(name, variants=make_variants(payload["variants"], state.flag(name)["variants"]))


def archive(state: Predicted, name: str, payload: Payload) -> None:
    state.flag(name)
    del state.flags[name]


def add_parent(state: Predicted, name: str, payload: Payload) -> None:
    added = make_dependency(payload)
    parents = state.flag(name)["dependencies"]
    known = any(parent["feature"] == added["feature"] for parent in parents)
    replaced = [added if parent["feature"] == added["feature"] else parent for parent in parents]
    state.edit(name, dependencies=replaced if known else [*parents, added])


def clear_parents(state: Predicted, name: str, payload: Payload) -> None:
    state.edit(name, dependencies=[])


def update_segment(state: Predicted, name: str, payload: Payload) -> None:
    segment = state.segments.get(payload["id"])
    if segment is not None and "constraints" in payload:
        constraints = [make_constraint(constraint) for constraint in payload["constraints"]]
        state.segments[payload["id"]] = {**segment, "constraints": constraints}


def delete_segment(state: Predicted, name: str, payload: Payload) -> None:
    state.segments.pop(payload["id"], None)
