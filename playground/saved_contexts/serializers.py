"""Bodies and responses of the API of saved contexts. ``rules`` checks the contexts themselves."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from flagadmin.http.fields import Body, NullableText
from playground.request import MOST_FIELDS
from playground.saved_contexts.rules import LONGEST_NAME, LONGEST_NOTE


@extend_schema_field(
    {"allOf": [{"$ref": "#/components/schemas/EvaluationContextRequest"}], "maxProperties": MOST_FIELDS}
)
class AnyContext(s.JSONField):
    """A context as the playground takes it."""


class SavedContextChanges(Body):
    name = s.CharField(max_length=LONGEST_NAME, required=False)
    context = AnyContext(required=False)  # type: ignore[assignment]  # a field's name, not DRF's own
    note = NullableText(max_length=LONGEST_NOTE, required=False)


class SavedContextBody(SavedContextChanges):
    name = s.CharField(max_length=LONGEST_NAME, help_text="Unique in the installation.")
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
    createdBy = s.CharField()
    createdAt = s.DateTimeField()
    updatedBy = s.CharField()
    updatedAt = s.DateTimeField()


class SavedContextList(s.Serializer[Any]):
    contexts = SavedContextRecord(many=True)


REQUEST_EXAMPLE: dict[str, Any] = {
    "name": "Norwegian beta user",
    "project": "checkout",
    "context": {"userId": "42", "properties": {"country": "NO", "plan": "beta"}},
    "note": "Pays by invoice.",
}
RESPONSE_EXAMPLE: dict[str, Any] = {
    "id": 1,
    **REQUEST_EXAMPLE,
    "createdBy": "ada",
    "createdAt": "2026-11-22T09:00:00.000Z",
    "updatedBy": "ada",
    "updatedAt": "2026-11-22T09:00:00.000Z",
}
