"""Changes of safeguards: of a release plan, or of a flag in an environment."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from rest_framework import serializers

from flagadmin.core.http.fields import Body
from releases.changes import Kind, Payload, register
from releases.models import Safeguard
from releases.plans.changes import OfPlan, PlanId
from releases.plans.queries import find_by_key
from releases.plans.steps import find_plan_ahead, keep_plan
from releases.safeguards.actions import (
    remove_flag_safeguard,
    remove_safeguard,
    set_flag_safeguard,
    set_safeguard,
)
from releases.safeguards.queries import assign_values, safeguard_document
from releases.safeguards.rules import check_room
from releases.safeguards.serializers import FlagSafeguardBody, SafeguardBody
from releases.targets import Predicted, Target


class FlagSafeguardPayload(Body):
    safeguard = FlagSafeguardBody()


class FlagSafeguardId(Body):
    safeguardId = serializers.CharField(max_length=26)


class SafeguardPayload(PlanId):
    safeguard = SafeguardBody()


class SafeguardId(PlanId):
    safeguardId = serializers.CharField(max_length=26)


class _OfSafeguard(OfPlan):
    def read(self, target: Target, payload: Payload) -> Any:
        """The changed or removed safeguard; an added one conflicts with no other."""
        plan, key = target.plan(payload["planId"]), _find_key(payload)
        return _describe(plan.safeguard(key)) if key else None


@register("changeReleasePlanSafeguard")  # its name since 8.1 of the reference
@register("changeSafeguard")
class SetSafeguard(_OfSafeguard):
    payload = SafeguardPayload
    may_be_breached = True
    words = "Change a safeguard of {}"
    act = staticmethod(set_safeguard)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        plan = find_plan_ahead(state, name, payload)
        added, owner = Safeguard(plan_id=plan.pk), f"Release plan {plan.name}"
        safeguards = _put_in(plan.safeguards, added, payload["safeguard"], owner)
        keep_plan(state, name, replace(plan, safeguards=safeguards))

    def draft_breach(self, state: Predicted, name: str, payload: Payload) -> bool:
        """Turning off is the strongest action; pausing and stepping back only lead to reviewed states."""
        turns_off = (payload["safeguard"].get("action") or {}).get("type") == Safeguard.Action.TURN_OFF
        if turns_off:
            state.edit(name, enabled=False)
        return bool(turns_off)


@register("deleteReleasePlanSafeguard")
@register("deleteSafeguard")
class RemoveSafeguard(_OfSafeguard):
    payload = SafeguardId
    act = staticmethod(remove_safeguard)
    words = "Remove a safeguard of {}"
    subject = "safeguard {safeguardId}"

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        plan = find_plan_ahead(state, name, payload)
        removed = plan.safeguard(payload["safeguardId"])
        others = [each for each in plan.safeguards if each is not removed]
        keep_plan(state, name, replace(plan, safeguards=others))


class _OfFlagSafeguard(Kind):
    is_later = True

    def read(self, target: Target, payload: Payload) -> Any:
        key = _find_key(payload)
        return _describe(target.safeguard(key)) if key else target.definition and None


@register("changeFeatureEnvSafeguard")
class SetFlagSafeguard(_OfFlagSafeguard):
    payload = FlagSafeguardPayload
    may_be_breached = True
    words = "Have a safeguard turn {} off"
    act = staticmethod(set_flag_safeguard)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        safeguards = _put_in(state.safeguards(name), Safeguard(), payload["safeguard"], name)
        state.set_safeguards(name, safeguards)

    def draft_breach(self, state: Predicted, name: str, payload: Payload) -> bool:
        state.edit(name, enabled=False)
        return True


@register("deleteFeatureEnvSafeguard")
class RemoveFlagSafeguard(_OfFlagSafeguard):
    payload = FlagSafeguardId
    act = staticmethod(remove_flag_safeguard)
    words = "Remove a safeguard of {}"
    subject = "safeguard {safeguardId}"

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        safeguards, key = state.safeguards(name), payload["safeguardId"]
        removed = find_by_key(safeguards, key, f"{name} has no safeguard {key}.")
        state.set_safeguards(name, [each for each in safeguards if each is not removed])


def _find_key(payload: Mapping[str, Any]) -> str:
    return payload.get("safeguardId") or payload["safeguard"].get("id") or ""


def _describe(safeguard: Safeguard) -> Mapping[str, Any]:
    """Without the current state of an alert."""
    return safeguard_document(safeguard) | {"firingSince": None}


def _put_in(
    safeguards: Sequence[Safeguard], added: Safeguard, values: Mapping[str, Any], owner: str
) -> list[Safeguard]:
    """The safeguards with one added, or with the one with the id changed. Raises NotFound, ValidationError."""
    key = values.get("id")
    if not key:
        check_room(len(safeguards), owner)
        assign_values(added, values)
        return [*safeguards, added]
    edited = copy(find_by_key(safeguards, key, f"{owner} has no safeguard {key}."))
    assign_values(edited, values)
    return [edited if each.pk == key else each for each in safeguards]
