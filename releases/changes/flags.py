"""Changes of a flag: switching it, its strategies, variants and parents, and archiving it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rest_framework import serializers

from flagadmin.core.http.fields import Body, ListOf
from groups.access import Caller
from groups.permissions import Scope
from projects.flags.actions import update_flag
from projects.flags.archive.actions import archive_flags
from projects.flags.dependencies.actions import (
    add_dependency,
    clear_dependencies,
    make_dependency,
    remove_dependency,
)
from projects.flags.serializers import StrategyPlace, VariantBody
from projects.history.diff import format_variants
from projects.history.field_changes import list_strategy_changes
from projects.models import Segment
from projects.states import PERMISSIONS, Change, Part
from projects.strategies.fields import drop_sort_order
from projects.strategies.planned import PlannedFlag
from projects.strategies.rules import make_variants, merge_strategy
from projects.strategies.sentences import describe_new_reach, describe_reach, summarize_strategy
from projects.strategies.serializers import StrategyBody, StrategyChanges
from projects.strategies.write import change_flags
from releases.changes import Kind, Payload, drop_id, narrow_payload, register
from releases.plans.queries import ARCHIVE, OFF, ON
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


class InEnvironment(Kind):
    """A change of a flag in the environment: drafts and `apply` plan the same."""

    def plan(self, planned: PlannedFlag, payload: Payload) -> None:
        """Plans the change. Raises NotFound, ValidationError."""
        raise NotImplementedError

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        apply_together([(self, target, payload)], caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        planned = state.plan_flag(name)
        self.plan(planned, payload)
        state.change(name, *planned.made)


def apply_together(changes: Sequence[tuple[InEnvironment, Target, Payload]], caller: Caller) -> None:
    """Makes changes of flags in one environment, all or none."""
    by_flag: dict[str, list[tuple[InEnvironment, Payload]]] = defaultdict(list)
    for kind, target, payload in changes:
        by_flag[target.feature].append((kind, payload))

    def plan(planned: PlannedFlag) -> None:
        for kind, payload in by_flag[planned.flag.name]:
            planned.require(PERMISSIONS[kind.action])
            kind.plan(planned, payload)

    kind, target, _ = changes[0]
    names, permission = {target.project: [*by_flag]}, PERMISSIONS[kind.action]
    change_flags(names, [target.environment], permission, plan, caller=caller)


@register("updateEnabled")
class Switch(InEnvironment):
    payload = SwitchPayload
    subject = "switch"

    def plan(self, planned: PlannedFlag, payload: Payload) -> None:
        activates = bool(payload.get("shouldActivateDisabledStrategies"))
        planned.switch(payload["enabled"], activate_disabled=activates)

    def read(self, target: Target, payload: Payload) -> bool:
        return target.definition["enabled"]

    def say(self, target: Target, payload: Payload, then: Any) -> str:
        return f"Turn {target.feature} {'on' if payload['enabled'] else 'off'}"

    def describe_conflict(self, payload: Payload, then: Any, now: Any) -> list[str]:
        was, is_now, turned = ("on" if enabled else "off" for enabled in (then, now, not now))
        return [f"It was {was} then and is {is_now} now. This request turns it {turned}."]

    def turns_off(self, payload: Payload) -> bool:
        return not payload["enabled"]

    def touches_plans(self, payload: Payload) -> str:
        return ON if payload["enabled"] else OFF


class ShownStrategy(Kind):
    """A change of a strategy, with its sentence before and after."""

    of_strategies = True

    def describe_conflict(self, payload: Payload, then: Any, now: Any) -> list[str]:
        """A sentence for each field."""
        if isinstance(then, str):  # an added one is made from its flag's name
            return []
        wanted: Any = {**now, **narrow_payload(payload, then)}
        sets = {field.field: field.after for field in list_strategy_changes(now, wanted)}
        return [
            f"{each.field} was {each.before or 'none'} then and is {each.after or 'none'} now."
            + (f" This request sets {sets[each.field] or 'none'}." if each.field in sets else "")
            for each in list_strategy_changes(then, now)
        ]

    def show(self, payload: Payload, then: Any, now: Any, segments: Mapping[int, str]) -> tuple[Any, Any]:
        stored = now if isinstance(now, dict) else None
        changed = {key: value for key, value in narrow_payload(payload, then).items() if value is not None}
        before = summarize_strategy(stored, segments=segments) if stored else None
        return before, summarize_strategy((stored or {}) | changed, segments=segments)


@register("addStrategy")
class AddStrategy(ShownStrategy, InEnvironment):
    payload = StrategyBody

    def plan(self, planned: PlannedFlag, payload: Payload) -> None:
        planned.add_strategy(payload)

    def say(self, target: Target, payload: Payload, then: Any) -> str:
        reach = describe_reach(payload, Segment.objects.names(payload.get("segments") or ()))
        return (
            f"Also roll out {target.feature} to {reach}" if reach else f"Add a strategy to {target.feature}"
        )


class _OfStrategy(ShownStrategy, InEnvironment):
    subject = "strategy {id}"

    def read(self, target: Target, payload: Payload) -> dict[str, Any]:
        return drop_sort_order(target.strategy(payload["id"]))


@register("updateStrategy")
class UpdateStrategy(_OfStrategy):
    payload = StrategyPayload

    def plan(self, planned: PlannedFlag, payload: Payload) -> None:
        planned.edit_strategy(payload["id"], lambda stored: merge_strategy(stored, drop_id(payload)))

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

    def plan(self, planned: PlannedFlag, payload: Payload) -> None:
        planned.remove_strategy(payload["id"])

    def show(self, payload: Payload, then: Any, now: Any, segments: Mapping[int, str]) -> tuple[Any, Any]:
        before, _ = super().show(payload, then, now, segments)
        return before, None

    def turns_off(self, payload: Payload) -> bool:
        return True


@register("reorderStrategy")
class ReorderStrategies(InEnvironment):
    payload = StrategyPlace
    many = True
    words = "Reorder the strategies of {}"
    subject = "order"
    of_strategies = True

    def plan(self, planned: PlannedFlag, payload: Payload) -> None:
        planned.order_strategies((entry["id"], entry["sortOrder"]) for entry in payload)

    def read(self, target: Target, payload: Payload) -> list[str]:
        return [strategy["id"] for strategy in target.definition["strategies"]]


@register("patchVariant")
class SetVariants(InEnvironment):
    payload = VariantsPayload
    words = "Change the variants of {}"
    subject = "variants"
    place = "payload.variants"

    def plan(self, planned: PlannedFlag, payload: Payload) -> None:
        planned.edit_variants(lambda stored: payload["variants"])

    def read(self, target: Target, payload: Payload) -> Sequence[Any]:
        return target.definition["variants"]

    def show(self, payload: Payload, then: Any, now: Any, segments: Mapping[int, str]) -> tuple[Any, Any]:
        return format_variants(now), format_variants(make_variants(payload["variants"], now))


@register("updateImpressionData")
class SetImpressions(Kind):
    payload = ImpressionsPayload
    subject = "impressions"
    scope = Scope.PROJECT

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        changes = {"impression_data": payload["impressionData"]}
        update_flag(target.project, target.feature, changes, caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        state.edit(name, impression_data=payload["impressionData"])

    def read(self, target: Target, payload: Payload) -> bool:
        return target.definition["impression_data"]

    def say(self, target: Target, payload: Payload, then: Any) -> str:
        return f"Turn impression data of {target.feature} {'on' if payload['impressionData'] else 'off'}"


@register("archiveFeature")
class Archive(Kind):
    words = "Archive {}"
    subject = "archive"
    scope = Scope.PROJECT
    of_all = True

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        archive_flags(target.project, [target.feature], caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        del state.flags[state.flag(name)["name"]]

    def turns_off(self, payload: Payload) -> bool:
        return True

    def touches_plans(self, payload: Payload) -> str:
        return ARCHIVE


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

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        added = make_dependency(payload)
        state.change(name, Change("addDependency", Part("", "dependencies", added["feature"]), None, added))

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

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        parents = state.flag(name)["dependencies"]
        left = [parent for parent in parents if payload and parent["feature"] != payload["feature"]]
        state.edit(name, dependencies=left)

    def say(self, target: Target, payload: Payload, then: Any) -> str:
        if payload:
            return f"Have {target.feature} depend on {payload['feature']} no more"
        return f"Remove all parents of {target.feature}"
