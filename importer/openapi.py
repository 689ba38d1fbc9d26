"""OpenAPI schemas of import and export, generated from the types that validate the bodies."""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from pydantic import TypeAdapter
from rest_framework import serializers

from flagadmin.core.http.fields import Body, BoundedTexts, Texts
from flagadmin.core.http.openapi import read_sections
from importer.body.schemas import BodyDocument
from playground.comparison.given_contexts import MAX_CONTEXTS, ContextsBody
from playground.comparison.request import MAX_EXAMPLES

SECTIONS = read_sections(__file__)


def import_schema() -> dict[str, Any]:
    return inline_schema(BodyDocument)


def inline_schema(body: Any) -> dict[str, Any]:
    """The JSON schema of a type of bodies without references, so that it can be embedded anywhere."""
    schema = TypeAdapter(body).json_schema()
    return _inline(schema, schema.get("$defs", {}))


def _inline(part: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(part, list):
        return [_inline(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    if reference := part.get("$ref"):
        return _inline(definitions[reference.rpartition("/")[2]], definitions)
    return {
        key: _inline(value, definitions)
        for key, value in part.items()
        # pydantic adds a "title" string to every schema; a property named "title" is an object.
        if key != "$defs" and not (key == "title" and isinstance(value, str))
    }


class ImportBody(serializers.Serializer[Any]):
    """A placeholder for the body, which ``importer.body.schemas`` validates."""


class ImportBodySchema(OpenApiSerializerExtension):
    target_class = ImportBody

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        return import_schema()


class CompareImportBody(ImportBody):
    """An import, and the contexts to compare it for: ``contexts`` is validated here, the rest like an import."""

    contexts = ContextsBody(required=False)


class CompareImportBodySchema(OpenApiSerializerExtension):
    target_class = CompareImportBody

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        schema = import_schema()
        contexts = auto_schema.resolve_serializer(ContextsBody, direction).ref
        return schema | {"properties": schema["properties"] | {"contexts": contexts}}


class ReportEntry(serializers.Serializer[Any]):
    message = serializers.CharField()
    affectedItems = Texts()


class ValidationReport(serializers.Serializer[Any]):
    errors = ReportEntry(  # type: ignore[assignment]
        many=True, help_text="What prevents the import."
    )
    warnings = ReportEntry(many=True, help_text="What to know before importing.")
    permissions = ReportEntry(many=True, help_text="Missing permissions.")


class CompareQuery(serializers.Serializer[Any]):
    """The URL parameters of a comparison. Contexts can be given here, or with more kinds in the body."""

    synthetic = serializers.IntegerField(
        min_value=1,
        max_value=MAX_CONTEXTS,
        default=1_000,
        help_text="Generated users, with ids of their own.",
    )
    generated = serializers.BooleanField(
        default=False, help_text="Also edge cases, generated from the conditions."
    )
    seed = serializers.IntegerField(
        min_value=0, max_value=2**31 - 1, default=0, help_text="Other generated users."
    )
    limit = serializers.IntegerField(
        min_value=0, max_value=MAX_EXAMPLES, default=20, help_text="Examples in the answer."
    )


MAX_FLAGS = 10_000


class ExportQuery(Body):
    """Requires at least one of `features`, `tag` and `project`."""

    environment = serializers.CharField(max_length=255)
    features = BoundedTexts(max_length=MAX_FLAGS, required=False)
    tag = serializers.CharField(required=False)
    project = serializers.CharField(required=False)
    downloadFile = serializers.BooleanField(required=False, default=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not {"features", "tag", "project"} & attrs.keys():
            raise serializers.ValidationError("one of features, tag and project is required")
        return attrs


class ExportResult(serializers.Serializer[Any]):
    """The lists of an export, in this order, in the format of the import."""

    features = serializers.ListField(child=serializers.DictField())
    featureStrategies = serializers.ListField(child=serializers.DictField())
    featureEnvironments = serializers.ListField(child=serializers.DictField())
    contextFields = serializers.ListField(child=serializers.DictField())
    featureTags = serializers.ListField(child=serializers.DictField())
    segments = serializers.ListField(child=serializers.DictField())
    tagTypes = serializers.ListField(child=serializers.DictField())
    dependencies = serializers.ListField(child=serializers.DictField())
    links = serializers.ListField(child=serializers.DictField())
    payloadSchemas = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        help_text="With `?segments=full`: `feature` and `schema`.",
    )
    savedContexts = serializers.ListField(
        child=serializers.DictField(), required=False, help_text="With `?savedContexts=true`."
    )
