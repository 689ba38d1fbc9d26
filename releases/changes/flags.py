"""Changes of a flag: whether it is on, its strategies, variants and parents, and archiving it."""

from collections.abc import Mapping, Sequence
from typing import Any

from rest_framework import serializers

from flagadmin.core.http.fields import Body, ListOf
from flagadmin.core.unreadable_values import check_values
from groups.access import Caller
from groups.permissions import Scope
from projects.flags.archive.actions import archive_flags
from projects.flags.dependencies.actions import add_dependency, clear_dependencies
from projects.flags.dependencies.rules import make_dependency
from projects.flags.environments.actions import disable_flag, enable_flag, set_variants
from projects.flags.serializers import StrategyPlace, VariantBody
from projects.models import Flag
from projects.strategies.actions import (
    StrategyEdit,
    add_strategy,
    edit_strategies,
    order_problems,
    order_strategies,
    remove_strategy,
    update_strategy,
)
from projects.strategies.fields import drop_sort_order
from projects.strategies.rules import merge_strategy
from projects.strategies.serializers import StrategyBody, StrategyChanges
from projects.strategies.variant_rules import make_variants, variants_problems
from releases.changes import Kind, Payload, drop_id, register
from releases.predicted import Predicted
from releases.targets import Target


class SwitchPayload(Body):
    enabled = serializers.BooleanField()
    shouldActivateDisabledStrategies = serializers.BooleanField(
        required=False, help_text="Enable the flag's disabled strategies instead of adding the default one."
    )


class StrategyPayload(StrategyChanges):
    id = serializers.CharField(max_length=100)


class StrategyId(Body):
    id = serializers.CharField(max_length=100)


class VariantsPayload(Body):
    variants = VariantBody(many=True)


class ParentPayload(Body):
    feature = serializers.CharField(max_length=255, help_text="The parent.")
    enabled = serializers.BooleanField(required=False)
    variants = ListOf(child=serializers.CharField(max_length=255), required=False)


@register("updateEnabled")
class Switch(Kind):
    payload = SwitchPayload
    subject = "switch"

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        if payload["enabled"]:
            enable_flag(*target.path, activate_disabled=_activates(payload), caller=caller)
        else:
            disable_flag(*target.path, caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        state.switch(name, payload["enabled"], activate_disabled=_activates(payload))

    def read(self, target: Target, payload: Payload) -> bool:
        return target.definition["enabled"]

    def say(self, target: Target, payload: Payload) -> str:
        return f"Turn {target.feature} {'on' if payload['enabled'] else 'off'}"


def _activates(payload: Mapping[str, Any]) -> bool:
    return bool(payload.get("shouldActivateDisabledStrategies"))


@register("addStrategy")
class AddStrategy(Kind):
    payload = StrategyBody

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        add_strategy(*target.path, payload, caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        state.add_strategy(name, state.plan(name, payload))

    def say(self, target: Target, payload: Payload) -> str:
        return _say_rollout(target, payload, "Also roll out", "Add a strategy to")


class _OfStrategy(Kind):
    subject = "strategy {id}"

    def read(self, target: Target, payload: Payload) -> dict[str, Any]:
        return drop_sort_order(target.strategy(payload["id"]))


@register("updateStrategy")
class UpdateStrategy(_OfStrategy):
    payload = StrategyPayload
    applies_together = True

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        update_strategy(*target.path, payload["id"], drop_id(payload), caller=caller)

    def apply_all(self, changes: Sequence[tuple[Target, Payload]], caller: Caller) -> None:
        def merging(payload: Mapping[str, Any]) -> Any:
            return lambda stored: merge_strategy(stored, drop_id(payload))

        edits = [StrategyEdit(target.feature, payload["id"], merging(payload)) for target, payload in changes]
        [(first, _), *_] = changes
        edit_strategies(first.project, first.environment, edits, caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        stored = state.strategy(name, payload["id"])
        state.replace_strategy(name, state.plan(name, merge_strategy(stored, payload), stored))

    def say(self, target: Target, payload: Payload) -> str:
        return _say_rollout(target, payload, "Roll out", "Change a strategy of")


@register("deleteStrategy")
class DeleteStrategy(_OfStrategy):
    payload = StrategyId
    words = "Remove a strategy of {}"

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        remove_strategy(*target.path, payload["id"], caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        state.remove_strategy(name, payload["id"])


def _say_rollout(target: Target, payload: Mapping[str, Any], verb: str, words: str) -> str:
    """Says the percentage, if it is what changes."""
    rollout = (payload.get("parameters") or {}).get("rollout")
    return f"{verb} {target.feature} to {rollout} %" if rollout else f"{words} {target.feature}"


@register("reorderStrategy")
class ReorderStrategies(Kind):
    payload = StrategyPlace
    many = True
    words = "Reorder the strategies of {}"
    subject = "order"

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        places = [(entry["id"], entry["sortOrder"]) for entry in payload]
        order_strategies(*target.path, places, caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        strategies = {strategy["id"]: strategy for strategy in state.flag(name)["strategies"]}
        ids, environment = [entry["id"] for entry in payload], state.project_environment.environment_id
        check_values(order_problems(Flag(name=name), environment, ids, strategies))
        places = {entry["id"]: entry["sortOrder"] for entry in payload}
        state.order_strategies(name, places)

    def read(self, target: Target, payload: Payload) -> list[str]:
        return [strategy["id"] for strategy in target.definition["strategies"]]


@register("patchVariant")
class SetVariants(Kind):
    payload = VariantsPayload
    words = "Change the variants of {}"
    subject = "variants"
    place = "payload.variants"

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        set_variants(*target.path, payload["variants"], caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        check_values(variants_problems(payload["variants"], ""))
        state.edit(name, variants=make_variants(payload["variants"], state.flag(name)["variants"]))

    def read(self, target: Target, payload: Payload) -> Sequence[Any]:
        return target.definition["variants"]


@register("archiveFeature")
class Archive(Kind):
    words = "Archive {}"
    subject = "archive"
    scope = Scope.PROJECT

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        archive_flags(target.project, [target.feature], caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        del state.flags[state.flag(name)["name"]]


class _OfParents(Kind):
    subject = "parents"
    scope = Scope.PROJECT

    def read(self, target: Target, payload: Payload) -> list[Any]:
        return sorted(target.definition["dependencies"], key=lambda parent: parent["feature"])


@register("addDependency")
class AddParent(_OfParents):
    payload = ParentPayload

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        add_dependency(target.project, target.feature, payload, caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        added = make_dependency(payload)
        parents = {parent["feature"]: parent for parent in state.flag(name)["dependencies"]}
        state.edit(name, dependencies=[*(parents | {added["feature"]: added}).values()])

    def say(self, target: Target, payload: Payload) -> str:
        return f"Make {target.feature} depend on {payload['feature']}"


@register("deleteDependency")
class ClearParents(_OfParents):
    words = "Remove the parent of {}"

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        clear_dependencies(target.project, target.feature, caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        state.edit(name, dependencies=[])
