"""Predicts what an environment would answer after changes, without making them: takes no lock, writes nothing."""

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
from releases.models import Safeguard
from releases.plans.snapshots import PlanSnapshot, read_snapshots
from releases.targets import read_flag_safeguards, read_segment

Payload = Any
Draft = Callable[["Predicted", str, Payload], None]
"""Makes a change of a flag, or of a segment without one. Raises NotFound, ValidationError."""


class Predicted:
    """Stored flags of an environment of a project, and the result of changes, one after the other.

    Release plans and safeguards of a flag are read once a change is about them. Nothing that was read is edited:
    changes put another one in its place.
    """

    def __init__(self, project_environment: ProjectEnvironment, stored: Definitions) -> None:
        self.project_environment = project_environment
        self.flags: dict[str, FlagDefinition] = {flag["name"]: flag for flag in stored.flags}
        self.segments = dict(stored.segments)
        self.start = stored
        """The flags before the first change."""
        self.segment_edits: dict[int, Mapping[str, Any]] = {}
        self.known_names = load_known_names(project_environment.project_id)
        self.limits = Limits.from_settings()
        self._plans: dict[str, Sequence[PlanSnapshot]] = {}
        self._safeguards: dict[str, Sequence[Safeguard]] = {}

    def copy(self) -> "Predicted":
        copied = copy(self)
        copied.flags, copied._plans, copied._safeguards = (
            dict(self.flags),
            dict(self._plans),
            dict(self._safeguards),
        )
        copied.take_segments(self)
        copied.start = self.definitions()
        return copied

    def take_segments(self, other: "Predicted") -> None:
        """As another project's changes leave them."""
        self.segments, self.segment_edits = dict(other.segments), dict(other.segment_edits)

    def definitions(self) -> Definitions:
        return Definitions(list(self.flags.values()), self.segments)

    def flag(self, name: str) -> FlagDefinition:
        if name not in self.flags:
            raise NotFound(f"Flag {name} not found in project {self.project_environment.project_id}.")
        return self.flags[name]

    def plans(self, name: str) -> Sequence[PlanSnapshot]:
        """Newest first."""
        address = self._address(name)
        if name not in self._plans:
            self._plans[name] = read_snapshots(*address)
        return self._plans[name]

    def set_plans(self, name: str, plans: Sequence[PlanSnapshot]) -> None:
        self._plans[name] = plans

    def safeguards(self, name: str) -> Sequence[Safeguard]:
        """Returns the safeguards of the flag itself."""
        address = self._address(name)
        if name not in self._safeguards:
            self._safeguards[name] = read_flag_safeguards(*address)
        return self._safeguards[name]

    def set_safeguards(self, name: str, safeguards: Sequence[Safeguard]) -> None:
        self._safeguards[name] = safeguards

    def _address(self, name: str) -> tuple[str, str, str]:
        """Raises NotFound."""
        link = self.project_environment
        return link.project_id, self.flag(name)["name"], link.environment_id

    def segment(self, key: int) -> Mapping[str, Any]:
        """Its document. Raises NotFound."""
        project_id = self.project_environment.project_id
        if key not in self.segments:
            raise NotFound(f"Segment {key} not found in project {project_id}.")
        return {**read_segment(project_id, key), **self.segment_edits.get(key, {})}

    def edit(self, name: str, **members: Any) -> None:
        edited: Any = {**self.flag(name), **members}
        self.flags[name] = edited

    def strategy(self, name: str, strategy_id: str) -> StrategyDefinition:
        for strategy in self.flag(name)["strategies"]:
            if strategy["id"] == strategy_id:
                return strategy
        raise NotFound(f"{name} has no strategy {strategy_id} in {self.project_environment.environment_id}.")

    def set_strategies(self, name: str, strategies: Sequence[StrategyDefinition]) -> None:
        """Sets the strategies in their order. A flag that loses its last enabled strategy is turned off."""
        ordered = sorted(strategies, key=_sort_order)
        enabled = self.flag(name)["enabled"] and not _all_disabled(ordered)
        self.edit(name, strategies=ordered, enabled=enabled)

    def plan(
        self, name: str, values: Mapping[str, Any], stored: StrategyDefinition | None = None
    ) -> StrategyDefinition:
        """A strategy as it would be stored: the last one, if it is new and has no sort order."""
        document, problems = plan_strategy(
            values,
            "",
            defaults=StrategyDefaults(
                flag=name, stickiness=self.project_environment.project.default_stickiness
            ),
            known_names=self.known_names,
            limits=self.limits,
            stored_variants=stored["variants"] if stored else (),
        )
        check_values(problems)
        if document["sortOrder"] is None:
            document["sortOrder"] = stored["sortOrder"] if stored else self._next_sort_order(name)
        document["id"] = stored["id"] if stored else ""
        return document

    def _next_sort_order(self, name: str) -> int:
        taken = [_sort_order(strategy) for strategy in self.flag(name)["strategies"]]
        return max(taken) + 1 if taken else 0


def _sort_order(strategy: StrategyDefinition) -> int:
    return strategy["sortOrder"] or 0


def _all_disabled(strategies: Sequence[StrategyDefinition]) -> bool:
    return all(strategy["disabled"] for strategy in strategies)


def switch(state: Predicted, name: str, payload: Payload) -> None:
    strategies = state.flag(name)["strategies"]
    if payload["enabled"] and _all_disabled(strategies):
        if strategies and payload.get("shouldActivateDisabledStrategies"):
            strategies = [{**strategy, "disabled": False} for strategy in strategies]
        else:
            added: Any = plan_added_strategy(Flag(name=name), state.project_environment)
            strategies = [*strategies, state.plan(name, added)]
    state.edit(name, strategies=strategies, enabled=payload["enabled"])


def add_strategy(state: Predicted, name: str, payload: Payload) -> None:
    added = [*state.flag(name)["strategies"], state.plan(name, payload)]
    state.edit(name, strategies=sorted(added, key=_sort_order))


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
    ids = [entry["id"] for entry in payload]
    problems: list[Problem] = list(
        order_problems(Flag(name=name), state.project_environment.environment_id, ids, strategies)
    )
    check_values(problems)
    for entry in payload:
        strategies[entry["id"]] = {**strategies[entry["id"]], "sortOrder": entry["sortOrder"]}
    ordered = sorted(strategies.values(), key=lambda each: (_sort_order(each), each["id"]))
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
    key = payload["id"]
    edits = {member: value for member, value in payload.items() if member != "id"}
    if "constraints" in edits:
        edits["constraints"] = [make_constraint(constraint) for constraint in edits["constraints"]]
        if (segment := state.segments.get(key)) is not None:
            state.segments[key] = {**segment, "constraints": edits["constraints"]}
    state.segment_edits[key] = {**state.segment_edits.get(key, {}), **edits}


def delete_segment(state: Predicted, name: str, payload: Payload) -> None:
    state.segments.pop(payload["id"], None)
