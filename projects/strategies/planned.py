"""A flag in an environment, and changes planned for it: drafts, change requests and actions plan the same ones."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import NotFound, Problem, ValidationError, check_problems
from flagadmin.core.unreadable_values import check_values
from groups.permissions import Permission
from playground.engine.definitions import StrategyDefinition, VariantDefinition
from projects.models import Flag, ProjectEnvironment
from projects.rules import Limits
from projects.states import Change, Part, apply_there, change_strategy, has_enabled, next_sort_order
from projects.strategies.fields import MEMBERS, drop_sort_order
from projects.strategies.rules import (
    StrategyDefaults,
    StrategyPlanner,
    make_default_strategy,
    make_variants,
    variants_problems,
)

Edit = Callable[[StrategyDefinition], Mapping[str, Any]]
"""Gets the current strategy, and returns the new one."""


class PlannedFlag:
    """``made`` are the planned changes, from ``before`` to ``state``: documents of the flag in the environment.

    Each method plans a change, and raises the errors of making it. ``require`` is called with the permissions that it
    needs beyond that of its action. Added strategies get ids from ``make_id``.
    """

    def __init__(
        self,
        flag: Flag,
        link: ProjectEnvironment,
        state: Mapping[str, Any],
        planner: StrategyPlanner,
        *,
        make_id: Callable[[], str] = str,
        require: Callable[[Permission], None] = lambda permission: None,
    ) -> None:
        self.flag, self.link, self.before, self.state = flag, link, state, state
        self.planner, self.make_id, self.require = planner, make_id, require
        self.made: list[Change] = []

    @property
    def strategies(self) -> list[StrategyDefinition]:
        strategies: list[StrategyDefinition] = self.state["strategies"]
        return strategies

    @property
    def is_switched(self) -> bool:
        return bool(self.before["enabled"] != self.state["enabled"])

    def find_strategy(self, key: str) -> StrategyDefinition:
        """Raises NotFound."""
        with suppress(ValueError):
            key = str(UUID(key))
        for strategy in self.strategies:
            if strategy["id"] == key:
                return strategy
        raise NotFound(f"{self.flag.name} has no strategy {key} in {self.link.environment_id}.")

    def switch(self, enabled: bool, *, activate_disabled: bool = False) -> None:
        """Turns the flag on or off.

        A flag without an enabled strategy gets the default one (`make_added_strategy`) when it is turned on. With
        ``activate_disabled``, its disabled strategies, if any, are enabled instead.
        """
        if enabled and not has_enabled(self.strategies):
            if self.strategies and activate_disabled:
                self.require(Permission.UPDATE_FEATURE_STRATEGY)
                enabling = (
                    change_strategy(each["id"], each, {**each, "disabled": False}) for each in self.strategies
                )
                self._make(*enabling)
            else:
                self.require(Permission.CREATE_FEATURE_STRATEGY)
                # The environment's own strategy is not a new value.
                default = make_added_strategy(self.flag, self.link)
                self._add(self.plan_strategy(default, known=default))
        self._make(Change("updateEnabled", Part("", "enabled"), not enabled, enabled))

    def add_strategy(self, values: Mapping[str, Any]) -> StrategyDefinition:
        """Without ``sortOrder`` it becomes the last one."""
        return self._add(self.plan_strategy(values))

    def edit_strategy(self, key: str, edit: Edit, expected: Expected = None) -> StrategyDefinition:
        """Missing members get their defaults, except ``sortOrder``, which stays."""
        stored = self.find_strategy(key)
        check_expected(expected, drop_sort_order(stored))
        after = self.plan_strategy(edit(stored), stored)
        self._make(change_strategy(stored["id"], stored, after))
        return after

    def remove_strategy(self, key: str, expected: Expected = None) -> None:
        stored = self.find_strategy(key)
        check_expected(expected, drop_sort_order(stored))
        self._make(change_strategy(stored["id"], stored, None))

    def order_strategies(self, orders: Iterable[tuple[str, int]]) -> None:
        """Sets sort orders by id. Other strategies keep theirs."""
        orders, stored = list(orders), {each["id"]: each["sortOrder"] for each in self.strategies}
        check_problems(
            order_problems(self.flag, self.link.environment_id, (key for key, _ in orders), stored)
        )
        self._make(Change("reorderStrategy", Part("", "order"), stored, dict(orders)))

    def edit_variants(
        self,
        edit: Callable[[list[VariantDefinition]], Sequence[Mapping[str, Any]]],
        expected: Expected = None,
    ) -> list[VariantDefinition]:
        stored = self.state["variants"]
        check_expected(expected, stored)
        variants = edit(stored)
        check_values(variants_problems(variants, ""))
        after = make_variants(variants, stored)
        self._make(Change("patchVariant", Part("", "variants"), stored, after))
        return after

    def check_room(self) -> None:
        """Raises ValidationError if the flag would get too many strategies."""
        if len(self.strategies) > len(self.before["strategies"]):
            check_number_of_strategies(self.flag, self.link.environment_id, len(self.strategies) - 1)

    def _make(self, *changes: Change) -> None:
        self.made += changes
        self.state = apply_there(self.state, changes)

    def _add(self, document: StrategyDefinition) -> StrategyDefinition:
        self._make(change_strategy(document["id"], None, document))
        return document

    def plan_strategy(
        self,
        values: Mapping[str, Any],
        stored: StrategyDefinition | None = None,
        *,
        known: StrategyDefinition | None = None,
    ) -> StrategyDefinition:
        """The strategy in stored form. ``known``: a document whose values are not new, if none is stored."""
        defaults = StrategyDefaults(self.flag.name, self.link.project.default_stickiness)
        planned, problems = self.planner.plan(values, defaults, stored=stored or known)
        check_values(problems)
        document: Any = {member: planned[member] for member in MEMBERS}  # type: ignore[literal-required]
        if document["sortOrder"] is None:
            document["sortOrder"] = stored["sortOrder"] if stored else next_sort_order(self.strategies)
        document["id"] = stored["id"] if stored else self.make_id()
        return document | {"segments": planned["segments"]}


def make_added_strategy(flag: Flag, link: ProjectEnvironment) -> StrategyDefinition:
    """The strategy that a flag without an enabled one gets when it is turned on."""
    defaults = StrategyDefaults(flag.name, link.project.default_stickiness)
    document = make_default_strategy(link.default_strategy, defaults)
    return document | {"sortOrder": None, "disabled": False}


def order_problems(
    flag: Flag, environment: str, ids: Iterable[str], stored: Iterable[str]
) -> Iterator[Problem]:
    """The ids in a new order that belong to no stored strategy."""
    for index, strategy_id in enumerate(ids):
        if strategy_id not in stored:
            message = f"{flag.name} has no strategy {strategy_id} in {environment}"
            yield Problem(f"[{index}].id", message)


def check_number_of_strategies(flag: Flag, environment: str, number: int) -> None:
    """Raises ValidationError if a flag with this many strategies cannot get another."""
    limit = Limits.from_settings().strategies
    if number >= limit:
        raise ValidationError(f"{flag.name} has {limit} strategies in {environment}, the maximum.")


def check_strategy(
    flag: Flag, values: Mapping[str, Any], *, stored: StrategyDefinition | None = None
) -> StrategyDefinition:
    """The document to store for the given values in place of ``stored``. Raises ValidationError with every problem."""
    defaults = StrategyDefaults(flag.name, flag.project.default_stickiness)
    document, problems = StrategyPlanner(flag.project_id).plan(values, defaults, stored=stored)
    check_values(problems)
    return document
