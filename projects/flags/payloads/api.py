"""/api/admin/projects/:projectId/features/:name/payload-schema: the JSON Schema of the flag's JSON payloads."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.http.fields import Body, JsonValue, MapOf
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.flags.payloads import actions
from projects.project_scope import OnFlagViewSet

EXAMPLE = OpenApiExample(
    "A price and a currency",
    {
        "schema": {
            "type": "object",
            "required": ["price"],
            "properties": {"price": {"type": "number", "minimum": 0}, "currency": {"enum": ["EUR", "USD"]}},
        }
    },
    request_only=True,
)


class PayloadSchemaBody(Body):
    schema = MapOf(child=JsonValue(), help_text="JSON Schema, draft 2020-12, that refers only to itself.")


class PayloadSchemaRecord(serializers.Serializer[Any]):
    schema = serializers.DictField(allow_null=True)


class PayloadSchemaViewSet(ETagMixin, OnFlagViewSet):
    tags = ("Features",)
    permissions = {"replace": Permission.UPDATE_FEATURE, "clear": Permission.UPDATE_FEATURE}
    tagged = frozenset({"list"})
    conditional = frozenset({"replace", "clear"})

    def get_current_document(self) -> dict[str, Any]:
        return actions.schema_document(self.flag)

    @extend_schema(operation_id="getPayloadSchema", responses={200: PayloadSchemaRecord})
    def list(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Get the JSON Schema of the flag's JSON payloads; null without one."""
        return Response(actions.schema_document(self.flag))

    @extend_schema(
        operation_id="setPayloadSchema",
        request=PayloadSchemaBody,
        responses={204: None},
        examples=[EXAMPLE],
    )
    def replace(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Set the JSON Schema that all JSON payloads of the flag's variants must satisfy.

        It is refused if a stored payload does not satisfy it.
        """
        schema = self.validated(PayloadSchemaBody)["schema"]
        actions.set_schema(project_id, name, schema, expected=self.expected, caller=self.caller)
        return Response(status=204)

    @extend_schema(operation_id="removePayloadSchema", responses={204: None})
    def clear(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Remove the JSON Schema of the flag's JSON payloads."""
        actions.set_schema(project_id, name, None, expected=self.expected, caller=self.caller)
        return Response(status=204)
