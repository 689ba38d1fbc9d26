"""The import's OpenAPI description, made from the shape that reads the bodies."""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from pydantic import TypeAdapter
from rest_framework import serializers

from flagadmin.http.fields import Body, ListOf
from importer.body.schemas import WireBody

IMPORT_DESCRIPTION = """\
Creates and overwrites flags of one project in one environment, all or none, from the result of an export.

* A flag that `features` lists is overwritten: what the body does not say falls back to the defaults. Its switch,
  environment variants, links and parents stay unless the body speaks of them, and an empty list clears them. Its
  strategies in the environment and its tags are replaced. Other environments stay as they are.
* To an existing flag that `features` does not list, strategies and tags are added.
* Archived flags are skipped; `validate` lists them. Flags of other projects are refused.
* Context fields and used tag types that are not here are created, and segments that come with `constraints`.
  Existing ones stay as they are.
* A flag that is switched on without an enabled strategy gets the default one.

Needs `UPDATE_FEATURE`, and for what the body makes necessary `CREATE_FEATURE`, `CREATE_FEATURE_STRATEGY`,
`DELETE_FEATURE_STRATEGY`, `UPDATE_FEATURE_ENVIRONMENT_VARIANTS`, `DELETE_FEATURE` (archiving), `CREATE_CONTEXT_FIELD`,
`CREATE_TAG_TYPE`, `CREATE_SEGMENT`. Every problem of a body is listed in `details`, with its JSON path.

The answer has no body. `Prefer: return=representation` or `?report=1` asks for one: `{id, project, environment,
counts, features: [{name, action, reason}]}`, with the actions `create`, `change`, `same` and `skip`.
"""
VALIDATE_DESCRIPTION = """\
Says what stands against an import, without writing anything: it would succeed exactly when `errors` and `permissions`
are empty. A body that does not match the schema is refused as the import refuses it.
"""
EXPORT_DESCRIPTION = """\
Flags as they are in one environment, for an import elsewhere. Chosen by `tag` (a tag's value, of any type), else by
`features` (names; unknown ones are left out), else by `project`. Archived flags come only when they are named.
`downloadFile` makes a browser save the answer.

Strategies have their `sortOrder`, so that an import keeps their order. Segments are `{id, name}`, as Unleash reads
them: whoever imports the file must have segments of these names. `?segments=full` adds their `constraints`; an import
here then creates the segments that are missing, but Unleash refuses such a file.
"""
IMPORT_EXAMPLE = {
    "project": "checkout",
    "environment": "production",
    "data": {
        "features": [{"name": "one-click-pay", "type": "release", "description": "Pay without a basket"}],
        "featureStrategies": [
            {
                "name": "flexibleRollout",
                "featureName": "one-click-pay",
                "parameters": {"rollout": "40", "stickiness": "default", "groupId": "one-click-pay"},
                "constraints": [{"contextName": "country", "operator": "IN", "values": ["DE", "NO"]}],
            }
        ],
        "featureEnvironments": [{"name": "one-click-pay", "featureName": "one-click-pay", "enabled": True}],
        "tagTypes": [],
    },
}
VALIDATE_EXAMPLE = {
    "errors": [
        {
            "message": "We detected the following segments that need to be created first:",
            "affectedItems": ["vip-users"],
        }
    ],
    "warnings": [
        {
            "message": "The following features already exist in this project and will be overwritten:",
            "affectedItems": ["one-click-pay"],
        }
    ],
    "permissions": [],
}


def import_schema() -> dict[str, Any]:
    """The body's JSON schema, whole: without references, so that it can stand anywhere."""
    schema = TypeAdapter(WireBody).json_schema()
    return _inlined(schema, schema.get("$defs", {}))


def _inlined(part: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(part, list):
        return [_inlined(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    if reference := part.get("$ref"):
        return _inlined(definitions[reference.rpartition("/")[2]], definitions)
    return {
        key: _inlined(value, definitions)
        for key, value in part.items()
        # "title" is pydantic's own word here unless it is the name of a property, and then it is an object.
        if key != "$defs" and not (key == "title" and isinstance(value, str))
    }


class ImportBody(serializers.Serializer[Any]):
    """Stands for the body, which ``importer.body.schemas`` reads."""


class ImportBodySchema(OpenApiSerializerExtension):
    target_class = ImportBody

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        return import_schema()


class ReportEntry(serializers.Serializer[Any]):
    message = serializers.CharField()
    affectedItems = serializers.ListField(child=serializers.CharField())


class ValidationReport(serializers.Serializer[Any]):
    errors = ReportEntry(  # type: ignore[assignment]
        many=True, help_text="What stands against the import."
    )
    warnings = ReportEntry(many=True, help_text="What to know before it.")
    permissions = ReportEntry(many=True, help_text="Permissions that are missing.")


MOST_FLAGS = 10_000


class ExportQuery(Body):
    """At least one of ``features``, ``tag`` and ``project``."""

    environment = serializers.CharField(max_length=255)
    features = ListOf(child=serializers.CharField(), max_length=MOST_FLAGS, required=False)
    tag = serializers.CharField(required=False)
    project = serializers.CharField(required=False)
    downloadFile = serializers.BooleanField(required=False, default=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not {"features", "tag", "project"} & attrs.keys():
            raise serializers.ValidationError("one of features, tag and project is required")
        return attrs


class ExportResult(serializers.Serializer[Any]):
    """The nine lists of an export, in this order; each as the import takes it."""

    features = serializers.ListField(child=serializers.DictField())
    featureStrategies = serializers.ListField(child=serializers.DictField())
    featureEnvironments = serializers.ListField(child=serializers.DictField())
    contextFields = serializers.ListField(child=serializers.DictField())
    featureTags = serializers.ListField(child=serializers.DictField())
    segments = serializers.ListField(child=serializers.DictField())
    tagTypes = serializers.ListField(child=serializers.DictField())
    dependencies = serializers.ListField(child=serializers.DictField())
    links = serializers.ListField(child=serializers.DictField())
