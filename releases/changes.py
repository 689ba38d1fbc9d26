"""The actions of change requests: what each takes, changes and says. Nothing else knows them.

Their names and payloads are the reference server's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rest_framework import serializers

from flagadmin.core.errors import Problem, ValidationError, choices
from flagadmin.core.http.error_responses import problems_of
from flagadmin.core.http.fields import Body, ListOf
from groups.access import Caller
from projects.flags.archive.actions import archive_flags
from projects.flags.dependencies.actions import add_dependency, clear_dependencies
from projects.flags.environments.actions import disable_flag, enable_flag, set_variants
from projects.flags.serializers import StrategyPlace, VariantBody
from projects.models import Segment
from projects.segments.actions import delete_segment, update_segment
from projects.strategies.actions import (
    StrategyEdit,
    add_strategy,
    drop_sort_order,
    edit_strategies,
    order_strategies,
    remove_strategy,
    update_strategy,
)
from projects.strategies.constraint_serializers import ConstraintBody
from projects.strategies.rules import merge_strategy
from projects.strategies.serializers import StrategyBody, StrategyChanges
from releases import predicted
from releases.targets import Target


@dataclass(frozen=True, slots=True)
class Kind:
    """An action of change requests.

    ``read`` returns what the action changes, as JSON; it raises NotFound if that does not exist. ``about`` names the
    part of a flag or segment that it changes: a second change of the same replaces the first. None: both are made.
    ``draft`` predicts the result of ``apply``. ``leads_to``: what is reviewed, if more happens automatically
    afterwards. ``is_later``: it decides only about what happens afterwards. ``apply_all`` makes several of one
    environment at once.
    """

    apply: Callable[[Target, Any, Caller], Any]
    read: Callable[[Target, Any], Any]
    say: Callable[[Target, Any], str]
    about: Callable[[Any], str] | None
    draft: predicted.Draft
    payload: type[serializers.Serializer] | None = None
    many: bool = False
    of_segment: bool = False
    leads_to: predicted.Draft | None = None
    is_later: bool = False
    apply_all: Callable[[Sequence[tuple[Target, Any]], Caller], Any] | None = None

    def checked(self, payload: Any, path: str) -> Any:
        """The payload as it is stored. Raises ValidationError with places below ``path``."""
        if self.payload is None:
            return None
        body = self.payload(data=payload, many=self.many)
        if not body.is_valid():
            problems = problems_of(body.errors)
            raise ValidationError.of(
                Problem(_below(path, problem.path), problem.message) for problem in problems
            )
        return body.validated_data


def _below(path: str, place: str) -> str:
    return path + (place if place.startswith("[") or not place else f".{place}")


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


class SegmentPayload(Body):
    id = serializers.IntegerField()
    name = serializers.CharField(max_length=255, required=False)
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    constraints = ConstraintBody(many=True, required=False)


class SegmentId(Body):
    id = serializers.IntegerField()


def _switch(target: Target, payload: Mapping[str, Any], caller: Caller) -> None:
    if payload["enabled"]:
        activate = bool(payload.get("shouldActivateDisabledStrategies"))
        enable_flag(*target.path, activate_disabled=activate, caller=caller)
    else:
        disable_flag(*target.path, caller=caller)


def _update_strategies(changes: Sequence[tuple[Target, Any]], caller: Caller) -> None:
    def merging(payload: Mapping[str, Any]) -> Any:
        return lambda stored: merge_strategy(stored, _changes_of(payload))

    edits = [StrategyEdit(target.feature, payload["id"], merging(payload)) for target, payload in changes]
    [(first, _), *_] = changes
    edit_strategies(first.project, first.environment, edits, caller=caller)


def _read_strategy(target: Target, payload: Mapping[str, Any]) -> dict[str, Any]:
    return drop_sort_order(target.strategy(payload["id"]))


def _read_parents(target: Target, payload: Any) -> list[Any]:
    return sorted(target.definition["dependencies"], key=lambda parent: parent["feature"])


def _read_segment(target: Target, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    return target.flags.segment(payload["id"])


def _say_segment(verb: str) -> Callable[[Target, Any], str]:
    def say(target: Target, payload: Mapping[str, Any]) -> str:
        name = Segment.objects.filter(pk=payload["id"]).values_list("name", flat=True).first()
        return f"{verb} segment {name or payload['id']}"

    return say


def _say_strategy(verb: str) -> Callable[[Target, Any], str]:
    return lambda target, payload: f"{verb} a strategy of {target.feature}"


def _say_rollout(verb: str, words: str) -> Callable[[Target, Any], str]:
    """Says the percentage, if it is what changes."""

    def say(target: Target, payload: Mapping[str, Any]) -> str:
        rollout = (payload.get("parameters") or {}).get("rollout")
        return f"{verb} {target.feature} to {rollout} %" if rollout else f"{words} {target.feature}"

    return say


def _changes_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key != "id"}


KINDS: dict[str, Kind] = {
    "updateEnabled": Kind(
        _switch,
        lambda target, payload: target.definition["enabled"],
        lambda target, payload: f"Turn {target.feature} {'on' if payload['enabled'] else 'off'}",
        lambda payload: "switch",
        predicted.switch,
        SwitchPayload,
    ),
    "addStrategy": Kind(
        lambda target, payload, caller: add_strategy(*target.path, payload, caller=caller),
        lambda target, payload: target.definition["name"],
        _say_rollout("Also roll out", "Add a strategy to"),
        None,
        predicted.add_strategy,
        StrategyBody,
    ),
    "updateStrategy": Kind(
        lambda target, payload, caller: update_strategy(
            *target.path, payload["id"], _changes_of(payload), caller=caller
        ),
        _read_strategy,
        _say_rollout("Roll out", "Change a strategy of"),
        lambda payload: f"strategy {payload['id']}",
        predicted.update_strategy,
        StrategyPayload,
        apply_all=_update_strategies,
    ),
    "deleteStrategy": Kind(
        lambda target, payload, caller: remove_strategy(*target.path, payload["id"], caller=caller),
        _read_strategy,
        _say_strategy("Remove"),
        lambda payload: f"strategy {payload['id']}",
        predicted.remove_strategy,
        StrategyId,
    ),
    "reorderStrategy": Kind(
        lambda target, payload, caller: order_strategies(
            *target.path, [(entry["id"], entry["sortOrder"]) for entry in payload], caller=caller
        ),
        lambda target, payload: [strategy["id"] for strategy in target.definition["strategies"]],
        lambda target, payload: f"Reorder the strategies of {target.feature}",
        lambda payload: "order",
        predicted.order_strategies,
        StrategyPlace,
        many=True,
    ),
    "patchVariant": Kind(
        lambda target, payload, caller: set_variants(*target.path, payload["variants"], caller=caller),
        lambda target, payload: target.definition["variants"],
        lambda target, payload: f"Change the variants of {target.feature}",
        lambda payload: "variants",
        predicted.set_variants,
        VariantsPayload,
    ),
    "archiveFeature": Kind(
        lambda target, payload, caller: archive_flags(target.project, [target.feature], caller=caller),
        lambda target, payload: target.definition["name"],
        lambda target, payload: f"Archive {target.feature}",
        lambda payload: "archive",
        predicted.archive,
    ),
    "addDependency": Kind(
        lambda target, payload, caller: add_dependency(
            target.project, target.feature, payload, caller=caller
        ),
        _read_parents,
        lambda target, payload: f"Make {target.feature} depend on {payload['feature']}",
        lambda payload: "parents",
        predicted.add_parent,
        ParentPayload,
    ),
    "deleteDependency": Kind(
        lambda target, payload, caller: clear_dependencies(target.project, target.feature, caller=caller),
        _read_parents,
        lambda target, payload: f"Remove the parent of {target.feature}",
        lambda payload: "parents",
        predicted.clear_parents,
    ),
    "updateSegment": Kind(
        lambda target, payload, caller: update_segment(payload["id"], _changes_of(payload), caller=caller),
        _read_segment,
        _say_segment("Change"),
        lambda payload: f"segment {payload['id']}",
        predicted.update_segment,
        SegmentPayload,
        of_segment=True,
    ),
    "deleteSegment": Kind(
        lambda target, payload, caller: delete_segment(payload["id"], caller=caller),
        _read_segment,
        _say_segment("Delete"),
        lambda payload: f"segment {payload['id']}",
        predicted.delete_segment,
        SegmentId,
        of_segment=True,
    ),
}


def register(kinds: Mapping[str, Kind]) -> None:
    """Registers actions on what is above this module."""
    KINDS.update(kinds)


def find_kind(action: str, path: str) -> Kind:
    """Raises ValidationError that names the actions there are."""
    if action not in KINDS:
        raise ValidationError.at(path, f"must be one of {choices(KINDS)}, not {action}")
    return KINDS[action]
