"""Bodies and responses of the API of saved contexts. ``rules`` checks the contexts themselves."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from flagadmin.core.http.fields import Body, BoundedTexts, NullableText
from playground.comparison.draft import DraftBody
from playground.comparison.request import ExpectationRecord, SharedAnswer
from playground.context_body import MAX_FIELDS
from playground.saved_contexts.actions import MAX_NAME_LENGTH, MAX_NOTE_LENGTH
from projects.serializers import StrictSerializer
from projects.strategies.serializers import PayloadBody


@extend_schema_field(
    {"allOf": [{"$ref": "#/components/schemas/EvaluationContextRequest"}], "maxProperties": MAX_FIELDS}
)
class AnyContext(s.JSONField):
    """A context in the playground's format."""


class ExpectationBody(StrictSerializer):
    flag = s.CharField()
    environment = s.CharField()
    enabled = s.BooleanField(help_text="Whether the flag is expected to be on.")
    variant = s.CharField(required=False, allow_null=True, help_text="Of a flag that is on; null: any.")
    payload = PayloadBody(required=False, allow_null=True, help_text="Of a flag that is on; null: any.")
    enforcedIn = s.CharField(
        read_only=True,
        allow_null=True,
        help_text="The project that refuses to break it, if it refuses that at all; null: it is only reported.",
    )


class SavedContextChanges(Body):
    name = s.CharField(max_length=MAX_NAME_LENGTH, required=False)
    context = AnyContext(required=False)  # type: ignore[assignment]  # a field's name, not DRF's own
    note = NullableText(max_length=MAX_NOTE_LENGTH, required=False)
    expectations = ExpectationBody(many=True, required=False, help_text="All that it expects of flags.")


class SavedContextBody(SavedContextChanges):
    name = s.CharField(max_length=MAX_NAME_LENGTH, help_text="Unique in the installation.")
    context = AnyContext(help_text="As the playground takes it.")
    project = s.CharField(
        source="project_id",
        required=False,
        allow_null=True,
        help_text="The project that it belongs to; null: none, then it is offered everywhere.",
    )


class SavedContextRecord(s.Serializer[Any]):
    id = s.IntegerField()
    name = s.CharField()
    project = s.CharField(allow_null=True)
    context = AnyContext()  # type: ignore[assignment]
    note = s.CharField()
    expectations = ExpectationBody(many=True)
    createdBy = s.CharField()
    createdAt = s.DateTimeField()
    updatedBy = s.CharField()
    updatedAt = s.DateTimeField()


class SavedContextList(s.Serializer[Any]):
    contexts = SavedContextRecord(many=True)


class AsIfBody(StrictSerializer):
    environment = s.CharField()
    draft = DraftBody(help_text="An edit that is not saved, as in a comparison.")


class CheckBody(StrictSerializer):
    projects = BoundedTexts(
        required=False,
        allow_null=True,
        help_text="Only flags of these; all you can read.",
    )
    environments = BoundedTexts(required=False, help_text="Only in these.")
    contexts = BoundedTexts(required=False, help_text="Only what these saved contexts expect.")
    asIf = AsIfBody(
        required=False,
        help_text="Check this environment as if a draft were saved there; the others not at all.",
    )


class CheckedExpectation(ExpectationRecord):
    met = s.BooleanField()
    results = SharedAnswer(many=True)
    reason = s.CharField()


class CheckResponse(s.Serializer[Any]):
    checked = s.IntegerField()
    failed = s.IntegerField()
    expectations = CheckedExpectation(many=True)


CHECK_DESCRIPTION = """\
Checks what saved contexts expect against what is stored now, or would be once a draft is saved (`asIf`): for each
expectation whether it is `met`, what the flag gives, and why. `failed` counts those that are not met. An expectation is
met if every call gives what it says; a result that is random, or that only an SDK can tell, does not meet it. A flag
that does not exist, or is archived, is off.

Everybody may check expectations of flags that they can read. `manage.py check_expectations` does the same in a
pipeline, and can check an export as if it were imported.
"""
AS_IF_EXAMPLE: dict[str, Any] = {
    "asIf": {"environment": "production", "draft": {"flag": "checkout-redesign", "enabled": False}}
}
CHECK_EXAMPLE: dict[str, Any] = {
    "checked": 1,
    "failed": 1,
    "expectations": [
        {
            "savedContext": "Norwegian beta user",
            "project": "checkout",
            "flag": "checkout-redesign",
            "environment": "production",
            "enabled": True,
            "variant": "blue",
            "enforcedIn": "checkout",
            "met": False,
            "results": [{"isEnabled": False, "variant": None, "payload": None, "share": 1.0}],
            "reason": "userId 42 is in bucket 92 and the rollout stops at 10 %",
        }
    ],
}
REQUEST_EXAMPLE: dict[str, Any] = {
    "name": "Norwegian beta user",
    "project": "checkout",
    "context": {"userId": "42", "properties": {"country": "NO", "plan": "beta"}},
    "note": "Pays by invoice.",
    "expectations": [
        {"flag": "checkout-redesign", "environment": "production", "enabled": True, "variant": "blue"}
    ],
}
RESPONSE_EXAMPLE: dict[str, Any] = {
    "id": 1,
    **REQUEST_EXAMPLE,
    "expectations": [{**REQUEST_EXAMPLE["expectations"][0], "enforcedIn": "checkout"}],
    "createdBy": "ada",
    "createdAt": "2026-11-22T09:00:00.000Z",
    "updatedBy": "ada",
    "updatedAt": "2026-11-22T09:00:00.000Z",
}
