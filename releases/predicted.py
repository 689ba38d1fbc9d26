"""Predicts what an environment would answer after changes, without making them: takes no lock, writes nothing."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from flagadmin.core.errors import NotFound
from flagadmin.core.unreadable_values import check_values
from playground.engine.definitions import FlagDefinition, StrategyDefinition
from projects.definitions import Definitions
from projects.flags.environments.actions import plan_added_strategy
from projects.limits import Limits
from projects.models import Flag, ProjectEnvironment
from projects.strategies.known_names import load_known_names
from projects.strategies.rules import StrategyDefaults, plan_strategy
from releases.models import Safeguard
from releases.plans.snapshots import PlanSnapshot, read_snapshots
from releases.targets import read_flag_safeguards, read_segment


class Predicted:
    """Stored flags of an environment of a project, and the result of changes, one after the other.

    Release plans and safeguards of a flag are read once a change is about them. Nothing that was read is edited:
    changes put another one in its place.
    """

    def __init__(self, project_environment: ProjectEnvironment, stored: Definitions) -> None:
        self.project_environment = project_environment
        self.flags = stored.by_name()
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

    def switch(self, name: str, enabled: bool, *, activate_disabled: bool = False) -> None:
        """Turns the flag on or off. One without an enabled strategy gets one when it is turned on."""
        strategies = self.flag(name)["strategies"]
        if enabled and _all_disabled(strategies):
            if strategies and activate_disabled:
                strategies = [{**strategy, "disabled": False} for strategy in strategies]
            else:
                added: Any = plan_added_strategy(Flag(name=name), self.project_environment)
                strategies = [*strategies, self.plan(name, added)]
        self.edit(name, strategies=strategies, enabled=enabled)

    def add_strategy(self, name: str, added: StrategyDefinition) -> None:
        self.edit(name, strategies=sorted([*self.flag(name)["strategies"], added], key=_sort_order))

    def replace_strategy(self, name: str, edited: StrategyDefinition) -> None:
        """Replaces the strategy that has the same id."""
        others = self.flag(name)["strategies"]
        self.set_strategies(name, [edited if each["id"] == edited["id"] else each for each in others])

    def remove_strategy(self, name: str, strategy_id: str) -> None:
        removed = self.strategy(name, strategy_id)
        self.set_strategies(name, [each for each in self.flag(name)["strategies"] if each is not removed])

    def order_strategies(self, name: str, places: Mapping[str, int]) -> None:
        """``places``: sort orders by id. The other strategies keep theirs."""
        placed: list[Any] = [
            {**each, "sortOrder": places.get(each["id"], each["sortOrder"])}
            for each in self.flag(name)["strategies"]
        ]
        self.edit(name, strategies=sorted(placed, key=lambda each: (_sort_order(each), each["id"])))

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
