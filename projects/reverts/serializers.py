"""Bodies of reverts: of a flag to one of its versions, and of a change."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rest_framework import serializers

from flagadmin.core.http.fields import BoundedTexts, ListOf, Texts
from flagadmin.core.http.responses import iso
from projects.history.definitions_at import is_in_future
from projects.history.diff import DEPENDENCIES, DETAILS, ENVIRONMENT
from projects.reverts.change_plan import ChangePlan
from projects.reverts.environment_plan import EnvironmentPlan
from projects.reverts.parts import PlannedPart, name_segments
from projects.serializers import StrictSerializer

EVENT = (
    "An audit event of the flag (`GET /api/admin/events/{flag}`): its version is what the flag was after it."
)
AT = "A moment in the past, instead of an event. Without an offset, it is in UTC."
FLAG = "Only what the change did to this flag. By default all flags of the change."


class RevertEventQuery(StrictSerializer):
    feature = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=255, help_text=FLAG
    )


class ProblemRecord(serializers.Serializer):
    path = serializers.CharField()
    message = serializers.CharField()


class PartRecord(serializers.Serializer):
    part = serializers.ChoiceField([ENVIRONMENT, DEPENDENCIES, DETAILS])
    environment = serializers.CharField(allow_null=True)
    changes = BoundedTexts(help_text="What would change, as text.")
    problems = ProblemRecord(many=True, help_text="What cannot be restored: leave the part out.")
    notes = ProblemRecord(many=True, help_text="What will not be quite what it was. It prevents nothing.")
    missingPermissions = BoundedTexts(help_text="What the caller lacks.")


class FlagRevertRecord(serializers.Serializer):
    feature = serializers.CharField()
    project = serializers.CharField(allow_null=True)
    archival = serializers.ChoiceField(
        ["archive", "revive"], allow_null=True, help_text="Whether it would be archived or revived."
    )
    parts = PartRecord(many=True)
    addedTags = Texts()
    removedTags = Texts()
    payloadSchema = serializers.BooleanField(help_text="Whether its payload schema would change.")


class ChangeRevert(serializers.Serializer):
    """The effects that reverting a change would have, or has had."""

    event = serializers.IntegerField(help_text="The newest event of the change.")
    features = FlagRevertRecord(many=True)
    subjects = Texts(help_text="Segments and strategy types that become what they were.")
    problems = ProblemRecord(many=True, help_text="What prevents it, such as a later change of the same.")
    refusal = serializers.CharField(
        allow_null=True, help_text="Why no such change can be reverted, such as a deletion."
    )
    missing = Texts(help_text="The permissions that the caller lacks, as sentences.")


class VersionQuery(StrictSerializer):
    event = serializers.IntegerField(required=False, min_value=1, max_value=2**63 - 1, help_text=EVENT)
    at = serializers.DateTimeField(required=False, help_text=AT)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs.keys() & {"event", "at"}) != 1:
            raise serializers.ValidationError({"event": "give either event or at"})
        if "at" in attrs and is_in_future(attrs["at"]):
            raise serializers.ValidationError({"at": "must not be in the future"})
        return attrs


class RevertBody(VersionQuery):
    environments = ListOf(
        child=serializers.CharField(max_length=255),
        required=False,
        help_text="Revert these environments. By default all that the project used then.",
    )
    dependencies = serializers.BooleanField(default=True, help_text="Revert the flags that it depends on.")
    details = serializers.BooleanField(
        default=True, help_text="Revert description, type, stale and impression data."
    )


class RevertPreview(serializers.Serializer):
    event = serializers.IntegerField(allow_null=True)
    at = serializers.DateTimeField()
    parts = PartRecord(many=True, help_text="The parts that differ from the version.")


class SetBackQuery(StrictSerializer):
    at = serializers.DateTimeField(help_text="A moment in the past. Without an offset, it is in UTC.")
    projects = ListOf(
        child=serializers.CharField(max_length=255),
        required=False,
        help_text="By default all in which the caller may change flags there.",
    )

    def validate_at(self, at: datetime) -> datetime:
        if is_in_future(at):
            raise serializers.ValidationError("must not be in the future")
        return at


class SetBackBody(SetBackQuery):
    features = ListOf(
        child=serializers.CharField(max_length=255),
        required=False,
        help_text="By default all that differ and can be set back.",
    )


class FlagBackRecord(serializers.Serializer):
    feature = serializers.CharField()
    project = serializers.CharField()
    changes = BoundedTexts(help_text="What changes, as text.")
    notes = ProblemRecord(many=True, help_text="What will not be quite what it was. It prevents nothing.")


class KeptOutRecord(serializers.Serializer):
    feature = serializers.CharField()
    project = serializers.CharField()
    reason = serializers.CharField(help_text="Why it stays as it is; follows its name in a sentence.")


class SetBackRecord(serializers.Serializer):
    environment = serializers.CharField()
    at = serializers.DateTimeField()
    features = FlagBackRecord(many=True)
    keptOut = KeptOutRecord(many=True, help_text="Flags that differ from then and stay as they are.")
    segments = Texts(help_text="Segments that had other conditions then. They stay as they are.")


def make_set_back_record(plan: EnvironmentPlan) -> dict[str, Any]:
    segments = name_segments(row.planned for row in plan.flags)
    return {
        "environment": plan.environment,
        "at": iso(plan.at),
        "features": [
            {
                "feature": row.flag.name,
                "project": row.flag.project_id,
                "changes": [str(change) for change in row.planned.part.changes(segments)],
                "notes": [note.as_dict() for note in row.planned.notes],
            }
            for row in plan.flags
        ],
        "keptOut": [
            {"feature": row.name, "project": row.project, "reason": row.reason} for row in plan.kept_out
        ],
        "segments": list(plan.segments),
    }


def make_part_records(planned_parts: Sequence[PlannedPart]) -> list[dict[str, Any]]:
    segments = name_segments(planned_parts)
    return [
        {
            "part": planned.part.kind,
            "environment": planned.part.environment or None,
            "changes": [str(change) for change in planned.part.changes(segments)],
            "problems": [problem.as_dict() for problem in planned.problems],
            "notes": [note.as_dict() for note in planned.notes],
            "missingPermissions": [permission.value for permission in planned.missing],
        }
        for planned in planned_parts
    ]


def make_change_record(plan: ChangePlan) -> dict[str, Any]:
    return {
        "event": plan.event.pk,
        "features": [
            {
                "feature": row.name,
                "project": row.flag and row.flag.project_id,
                "archival": row.archival or None,
                "parts": make_part_records(row.parts),
                "addedTags": [":".join(tag) for tag in row.add_tags],
                "removedTags": [":".join(tag) for tag in row.remove_tags],
                "payloadSchema": row.schema is not None,
            }
            for row in plan.flags
        ],
        "subjects": [row.name for row in plan.subjects if row.changes_anything],
        "problems": [problem.as_dict() for problem in plan.problems],
        "refusal": plan.refusal or None,
        "missing": plan.missing,
    }
