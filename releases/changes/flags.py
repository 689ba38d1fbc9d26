"""Changes of a flag: switching it, its strategies, variants and parents, and archiving it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rest_framework import serializers

from flagadmin.core.http.fields import Body, ListOf
from flagadmin.core.unreadable_values import check_values
from groups.access import Caller
from groups.permissions import Scope
from projects.flags.actions import update_flag
from projects.flags.archive.actions import archive_flags
from projects.flags.dependencies.actions import (
    add_dependency,
    clear_dependencies,
    remove_dependency,
)
from projects.flags.dependencies.rules import make_dependency
from projects.flags.environments.actions import (
    disable_flag,
    disable_flags,
    enable_flag,
    enable_flags,
    plan_added_strategy,
    set_variants,
)
from projects.flags.serializers import StrategyPlace, VariantBody
from projects.models import Flag, Segment
from projects.states import Change, Part, change_parents, change_strategy, has_enabled
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
from projects.strategies.reach import describe_new_reach, describe_reach
from projects.strategies.rules import merge_strategy
from projects.strategies.serializers import StrategyBody, StrategyChanges
from projects.strategies.variant_rules import make_variants, variants_problems
from releases.changes import Kind, Payload, drop_id, register
from releases.targets import Predicted, Target


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


class ImpressionsPayload(Body):
    impressionData = serializers.BooleanField()


class ParentPayload(Body):
    feature = serializers.CharField(max_length=255, help_text="The parent.")
    enabled = serializers.BooleanField(required=False)
    variants = ListOf(child=serializers.CharField(max_length=255), required=False)


class ParentName(Body):
    feature = serializers.CharField(max_length=255, help_text="The parent.")


@register("updateEnabled")
class Switch(Kind):
    payload = SwitchPayload
    subject = "switch"
    applies_together = True

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        if payload["enabled"]:
            enable_flag(*target.path, activate_disabled=_activates(payload), caller=caller)
        else:
            disable_flag(*target.path, caller=caller)

    def apply_all(self, changes: Sequence[tuple[Target, Payload]], caller: Caller) -> None:
        [(first, _), *_] = changes
        place = first.project, first.environment
        for (enabled, activates), alike in groupby(changes, lambda each: _read_switch(each[1])):
            names = [target.feature for target, _ in alike]
            if enabled:
                enable_flags(place[0], names, place[1], activate_disabled=activates, caller=caller)
            else:
                disable_flags(place[0], names, place[1], caller=caller)

    def list_changes(self, state: Predicted, name: str, payload: Payload) -> Iterator[Change]:
        """Includes the strategy that a flag without an enabled one gets when it is turned on."""
        enabled, strategies = payload["enabled"], state.flag(name)["strategies"]
        if enabled and not has_enabled(strategies):
            if strategies and _activates(payload):
                for strategy in strategies:
                    yield change_strategy(strategy["id"], strategy, {"disabled": False})
            else:
                default: Any = plan_added_strategy(Flag(name=name), state.project_environment)
                yield change_strategy("", None, state.plan(name, default))
        yield Change("updateEnabled", Part("", "enabled"), not enabled, enabled)

    def read(self, target: Target, payload: Payload) -> bool:
        return target.definition["enabled"]

    def say(self, target: Target, payload: Payload, then: Any) -> str:
        return f"Turn {target.feature} {'on' if payload['enabled'] else 'off'}"


def _read_switch(payload: Mapping[str, Any]) -> tuple[bool, bool]:
    return payload["enabled"], _activates(payload)


def _activates(payload: Mapping[str, Any]) -> bool:
    return bool(payload.get("shouldActivateDisabledStrategies"))


@register("addStrategy")
class AddStrategy(Kind):
    payload = StrategyBody

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        add_strategy(*target.path, payload, caller=caller)

    def list_changes(self, state: Predicted, name: str, payload: Payload) -> list[Change]:
        return [change_strategy("", None, state.plan(name, payload))]

    def say(self, target: Target, payload: Payload, then: Any) -> str:
        reach = describe_reach(payload, Segment.objects.names(payload.get("segments") or ()))
        return (
            f"Also roll out {target.feature} to {reach}" if reach else f"Add a strategy to {target.feature}"
        )


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

    def list_changes(self, state: Predicted, name: str, payload: Payload) -> list[Change]:
        stored = state.target(name).strategy(payload["id"])
        return [
            change_strategy(stored["id"], stored, state.plan(name, merge_strategy(stored, payload), stored))
        ]

    def say(self, target: Target, payload: Payload, then: Any) -> str:
        before = then if isinstance(then, dict) else {}
        after = before | {key: value for key, value in drop_id(payload).items() if value is not None}
        segments = Segment.objects.names({*before.get("segments", ()), *after.get("segments", ())})
        return describe_new_reach(target.feature, before, after, segments) or (
            f"Change a strategy of {target.feature}"
        )


@register("deleteStrategy")
class DeleteStrategy(_OfStrategy):
    payload = StrategyId
    words = "Remove a strategy of {}"

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        remove_strategy(*target.path, payload["id"], caller=caller)

    def list_changes(self, state: Predicted, name: str, payload: Payload) -> list[Change]:
        return [change_strategy(payload["id"], state.target(name).strategy(payload["id"]), None)]


@register("reorderStrategy")
class ReorderStrategies(Kind):
    payload = StrategyPlace
    many = True
    words = "Reorder the strategies of {}"
    subject = "order"

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        places = [(entry["id"], entry["sortOrder"]) for entry in payload]
        order_strategies(*target.path, places, caller=caller)

    def list_changes(self, state: Predicted, name: str, payload: Payload) -> list[Change]:
        stored = {strategy["id"]: strategy["sortOrder"] for strategy in state.flag(name)["strategies"]}
        places = {entry["id"]: entry["sortOrder"] for entry in payload}
        environment = state.environment
        check_values(order_problems(Flag(name=name), environment, [entry["id"] for entry in payload], stored))
        return [Change("reorderStrategy", Part("", "order"), stored, places)]

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

    def list_changes(self, state: Predicted, name: str, payload: Payload) -> list[Change]:
        check_values(variants_problems(payload["variants"], ""))
        stored = state.flag(name)["variants"]
        return [
            Change("patchVariant", Part("", "variants"), stored, make_variants(payload["variants"], stored))
        ]

    def read(self, target: Target, payload: Payload) -> Sequence[Any]:
        return target.definition["variants"]


@register("updateImpressionData")
class SetImpressions(Kind):
    payload = ImpressionsPayload
    subject = "impressions"
    scope = Scope.PROJECT

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        changes = {"impression_data": payload["impressionData"]}
        update_flag(target.project, target.feature, changes, caller=caller)

    def list_changes(self, state: Predicted, name: str, payload: Payload) -> list[Change]:
        before, after = state.flag(name)["impression_data"], payload["impressionData"]
        return [Change("updateDetails", Part("", "impression_data"), before, after)]

    def read(self, target: Target, payload: Payload) -> bool:
        return target.definition["impression_data"]

    def say(self, target: Target, payload: Payload, then: Any) -> str:
        return f"Turn impression data of {target.feature} {'on' if payload['impressionData'] else 'off'}"


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
    scope = Scope.PROJECT

    def find_subject(self, payload: Payload) -> str:
        return f"parents {payload['feature']}" if payload else "parents"

    def read(self, target: Target, payload: Payload) -> list[Any]:
        return sorted(target.definition["dependencies"], key=lambda parent: parent["feature"])


@register("addDependency")
class AddParent(_OfParents):
    payload = ParentPayload

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        add_dependency(target.project, target.feature, payload, caller=caller)

    def list_changes(self, state: Predicted, name: str, payload: Payload) -> list[Change]:
        added = make_dependency(payload)
        return [Change("addDependency", Part("", "dependencies", added["feature"]), None, added)]

    def say(self, target: Target, payload: Payload, then: Any) -> str:
        return f"Make {target.feature} depend on {payload['feature']}"


@register("deleteDependency")
class RemoveParents(_OfParents):
    """Removes the parent in the payload or, without one, all parents."""

    payload = ParentName

    def clean(self, payload: Any, path: str) -> Any:
        return super().clean(payload, path) if payload else None

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        if payload:
            remove_dependency(target.project, target.feature, payload["feature"], caller=caller)
        else:
            clear_dependencies(target.project, target.feature, caller=caller)

    def list_changes(self, state: Predicted, name: str, payload: Payload) -> Iterator[Change]:
        parents = state.flag(name)["dependencies"]
        left = [parent for parent in parents if payload and parent["feature"] != payload["feature"]]
        return change_parents(parents, left)

    def say(self, target: Target, payload: Payload, then: Any) -> str:
        if payload:
            return f"Have {target.feature} depend on {payload['feature']} no more"
        return f"Remove all parents of {target.feature}"
