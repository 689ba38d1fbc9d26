"""Changes of a segment, which belong to no flag."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.fields import Body
from groups.access import Caller
from groups.permissions import Scope
from projects.models import Segment
from projects.segments.actions import delete_segment, update_segment
from projects.strategies.constraint_rules import make_constraint
from projects.strategies.sentences import summarize_conditions
from projects.strategies.serializers import ConstraintBody
from releases.changes import Kind, Payload, drop_id, join_paths, narrow_payload, register
from releases.targets import Predicted, Target


class SegmentPayload(Body):
    id = serializers.IntegerField()
    name = serializers.CharField(max_length=255, required=False)
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    project = serializers.CharField(
        max_length=100,
        required=False,
        allow_null=True,
        allow_blank=True,
        help_text="As it is: it stays there.",
    )
    constraints = ConstraintBody(many=True, required=False)


class SegmentId(Body):
    id = serializers.IntegerField()


class _OfSegment(Kind):
    of_segment = True
    verb = ""
    subject = "segment {id}"

    def find_scope(self, payload: Payload) -> Scope:
        is_global = Segment.objects.filter(pk=payload["id"], project=None).exists()
        return Scope.ROOT if is_global else Scope.PROJECT

    def read(self, target: Target, payload: Payload) -> Mapping[str, Any]:
        return target.flags.segment(payload["id"])

    def say(self, target: Target, payload: Payload, then: Any) -> str:
        name = Segment.objects.filter(pk=payload["id"]).values_list("name", flat=True).first()
        return f"{self.verb} segment {name or payload['id']}"


@register("updateSegment")
class UpdateSegment(_OfSegment):
    payload, verb = SegmentPayload, "Change"

    def clean(self, payload: Any, path: str) -> Any:
        """Clients send the whole segment. Its project cannot change within an environment."""
        changes: dict[str, Any] = dict(super().clean(payload, path))
        if "project" in changes:
            project = changes.pop("project") or None
            if Segment.objects.filter(pk=changes["id"]).exclude(project=project).exists():
                text = "cannot be changed by a change request: move the segment without one"
                raise ValidationError.at(join_paths(path, "project"), text)
        return changes

    def show(self, payload: Payload, then: Any, now: Any, segments: Mapping[int, str]) -> tuple[Any, Any]:
        """The differing parts: name, conditions or both. Lists all conditions, because the last one may differ."""
        wanted = {**now, **payload}
        differing = [key for key in ("name", "constraints") if now[key] != wanted[key]]

        def describe(segment: Any) -> str | None:
            conditions = summarize_conditions(segment["constraints"], limit=len(segment["constraints"]))
            parts = {"name": segment["name"], "constraints": str(conditions)}
            return ": ".join(parts[key] for key in differing) or None

        return describe(now), describe(wanted)

    def is_idle(self, payload: Payload, then: Any) -> bool:
        return bool(narrow_payload(payload, then).keys() <= {"id"})

    def invert(self, payload: Payload, then: Any) -> Payload | None:
        before = {key: then[key] for key in narrow_payload(payload, then) if key in then}
        return before if len(before) > 1 else None

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        update_segment(payload["id"], drop_id(payload), caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        key, edits = payload["id"], drop_id(payload)
        if "constraints" in edits:
            edits["constraints"] = [make_constraint(constraint) for constraint in edits["constraints"]]
            if (segment := state.segments.get(key)) is not None:
                state.segments[key] = {**segment, "constraints": edits["constraints"]}
        state.segment_edits[key] = {**state.segment_edits.get(key, {}), **edits}


@register("deleteSegment")
class DeleteSegment(_OfSegment):
    payload, verb = SegmentId, "Delete"
    why_final = "has deleted a segment. Create it again instead."

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        delete_segment(payload["id"], caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        state.segments.pop(payload["id"], None)
