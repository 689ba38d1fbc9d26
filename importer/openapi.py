"""OpenAPI schemas of import and export, generated from the types that validate the bodies."""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from pydantic import TypeAdapter
from rest_framework import serializers

from flagadmin.core.http.fields import Body, BoundedTexts, Texts
from importer.body.schemas import BodyDocument
from playground.comparison.given_contexts import MAX_CONTEXTS, ContextsBody
from playground.comparison.request import MAX_EXAMPLES

IMPORT_DESCRIPTION = """\
Creates and overwrites flags of one project in one environment from an export. All flags are imported, or none.

* A flag that `features` lists is overwritten: what the body does not contain falls back to its default. Whether it is
  enabled, its environment variants, links and parents stay unless the body contains them; an empty list clears them.
  Its strategies in the environment and its tags are replaced. Other environments do not change.
* An existing flag that `features` does not list gets additional strategies and tags.
* Archived flags are skipped; `validate` lists them. Flags of other projects are refused.
* Missing context fields and used tag types are created, and missing segments that come with `constraints`.
  Existing ones do not change.
* A flag that is enabled without an enabled strategy gets the default strategy.
* `savedContexts`, which only this server's exports have, are created or overwritten by name. What they expect is of the
  environment of the import; what stored ones expect of other flags, and in other environments, stays.

Requires `UPDATE_FEATURE` and, depending on the body, `CREATE_FEATURE`, `CREATE_FEATURE_STRATEGY`,
`DELETE_FEATURE_STRATEGY`, `UPDATE_FEATURE_ENVIRONMENT_VARIANTS`, `UPDATE_FEATURE_ENVIRONMENT` (turning off a flag whose
strategies stay), `UPDATE_FEATURE_DEPENDENCY` (other parents of an existing flag), `DELETE_FEATURE` (archiving),
`CREATE_CONTEXT_FIELD`, `CREATE_TAG_TYPE`, `CREATE_SEGMENT`, `UPDATE_CONTEXT_FIELD` (saved contexts of no project).
`details` lists every problem with its JSON path.

The response has no body unless requested with `Prefer: return=representation` or `?report=1`: `{id, project,
environment, counts, features: [{name, action, reason}]}`, with the actions `create`, `change`, `same` and `skip`.

Where the environment takes change requests, nothing is imported: what it would answer differently is added to your
draft, and the response is `{changeRequest: {id, state, changes}, leftOut, alsoLeftOut}`. `leftOut`, if there, names
flags with more than that, such as tags, and new ones; `alsoLeftOut` what else the body would create or change:
`context field tier`. Import them again once the request is applied. A body that creates flags which are on at once is
refused with 403, and one whose changes need new segments or new parents with 400: create these first.
"""
VALIDATE_DESCRIPTION = """\
Checks an import without writing anything. It would succeed exactly when `errors` and `permissions` are empty: where the
project refuses broken expectations or takes change requests, it is tried out and undone. A body that does not match the
schema is refused with 400, as by the import.
"""
COMPARE_DESCRIPTION = """\
Evaluates the flags that an import changes, and those that depend on them, as they are stored and as they would be after
the import, for the same contexts, and says how many get something else, who, and why. Nothing is written.

The contexts are generated users (`synthetic`) with ids of their own, and values that the flag at hand names; with
`generated` also edge cases, which meet and miss each condition of the first 500 changed flags. `contexts` in the body
takes what that of `POST /api/admin/playground/compare` takes, in place of these parameters: explicit and saved ones,
CSV, and `fixed` fields of all users. The same request gives the same contexts. Flags times contexts are at most
1,000,000.

The answer is that of `POST /api/admin/playground/compare`: `people` get something else of at least one flag, and
`expectations` has what the import breaks and meets again, of this project alone; `broken` also has those that the body
brings with it and would not meet. `flags` has those that change, children included. A body that the import would refuse
for its contents is refused with 400. Everybody may compare who can read the project.
"""
EXPORT_DESCRIPTION = """\
Exports flags as they are in one environment, selected by `tag` (the value of a tag of any type), else by `features`
(names; unknown names are ignored), else by `project`. Archived flags are exported only if named. `downloadFile` makes
a browser save the response.

Strategies have a `sortOrder`, so that an import keeps their order. Segments are `{id, name}`, as Unleash expects: the
importing server must have segments of these names. `?segments=full` adds their `constraints`; an import into this
server then creates missing segments, but Unleash refuses such a file. `?savedContexts=true` adds saved contexts: those
of the flags' projects, and those of no project that expect something of these flags; Unleash refuses them too.
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


_COUNTS = {
    "offToOn": 182,
    "onToOff": 0,
    "variant": 0,
    "payload": 0,
    "share": 0,
    "unknown": 0,
    "unchanged": 818,
}
COMPARE_EXAMPLE = {
    "contexts": 1000,
    "people": 182,
    "counts": _COUNTS,
    "flags": [
        {
            "name": "one-click-pay",
            "counts": _COUNTS,
            "before": [{"isEnabled": False, "variant": None, "payload": None, "contexts": 1000.0}],
            "after": [
                {"isEnabled": False, "variant": None, "payload": None, "contexts": 818.0},
                {"isEnabled": True, "variant": None, "payload": None, "contexts": 182.0},
            ],
        }
    ],
    "examples": [
        {
            "flag": "one-click-pay",
            "context": {"country": "NO", "userId": "user-5"},
            "change": "offToOn",
            "before": {
                "results": [{"isEnabled": False, "variant": None, "payload": None, "share": 1.0}],
                "reason": "The flag does not exist, or is archived",
            },
            "after": {
                "results": [{"isEnabled": True, "variant": None, "payload": None, "share": 1.0}],
                "reason": "country is NO; userId user-5 is in bucket 9, 40 % rollout",
            },
        }
    ],
    "expectations": {"broken": [], "met": []},
}


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
    """An import, and the contexts to compare it for: ``contexts`` is validated here, the rest as an import is."""

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
    """The URL parameters of a comparison. Contexts are given here, or with more kinds of them in the body."""

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
    savedContexts = serializers.ListField(
        child=serializers.DictField(), required=False, help_text="With `?savedContexts=true`."
    )
