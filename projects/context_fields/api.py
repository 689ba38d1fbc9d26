"""/api/admin/context and /api/admin/projects/:projectId/context: context fields."""

from typing import Any

from django.db.models import Q
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.errors import NameExists, check_problems
from flagadmin.core.http.fields import Body, NameBody
from groups.access import Caller, Permission
from groups.authentication import ApiRequest
from projects.access import access_project
from projects.context_fields import actions
from projects.context_fields.actions import RESERVED_FIELDS
from projects.models import ContextField
from projects.project_scope import ScopedViewSet
from projects.rules import name_problems
from projects.used_by.queries import UNUSED, count_context_field_usage, list_context_field_uses
from projects.used_by.serializers import ProjectUse, SegmentUse, SegmentUses, VariantsUse

GLOBAL = Q(project=None)


class LegalValue(Body):
    value = serializers.CharField(trim_whitespace=False, help_text="1 to 100 characters.")
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)


class ContextFieldChanges(Body):
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    stickiness = serializers.BooleanField(required=False, help_text="Supports stickiness calculation.")
    sortOrder = serializers.IntegerField(
        source="sort_order", required=False, min_value=-(2**31), max_value=2**31 - 1
    )
    legalValues = LegalValue(
        source="legal_values", many=True, required=False, help_text="Empty: every value is legal."
    )


class NewContextField(ContextFieldChanges):
    name = serializers.CharField(help_text="1 to 100 characters: letters, digits and - . _ ~")
    project = serializers.CharField(
        source="project_id",
        required=False,
        allow_null=True,
        help_text="The project that the field belongs to; null: global.",
    )


class ContextFieldRecord(NewContextField):
    createdAt = serializers.DateTimeField()
    usedInFeatures = serializers.IntegerField(
        required=False,
        help_text="Number of active flags that use it in constraints, segments, stickiness or user lists.",
    )
    usedInProjects = serializers.IntegerField(required=False)


class ContextFieldUses(SegmentUses):
    variants = VariantsUse(many=True, help_text="Flags whose variants have it as their stickiness.")
    segments = SegmentUse(many=True, help_text="Segments with a constraint on it.")
    projects = ProjectUse(many=True, help_text="Projects with it as their default stickiness.")


def _make_include_parameter(value: str, description: str) -> OpenApiParameter:
    return OpenApiParameter("include", enum=[value], description=description)


def list_documents(caller: Caller, where: Q) -> list[dict[str, Any]]:
    fields = ContextField.objects.readable_by(caller).filter(where)
    usage = count_context_field_usage(caller)
    return [field.document() | usage.get(field.name, UNUSED) for field in fields]


class ContextFieldViewSet(ETagMixin, ScopedViewSet):
    """Global context fields. Only :class:`ProjectContextFieldViewSet` passes ``project_id``."""

    tags = ("Context",)
    lookup_url_kwarg = "name"
    permissions = {
        "create": Permission.CREATE_CONTEXT_FIELD,
        "validate": Permission.CREATE_CONTEXT_FIELD,
        "update": Permission.UPDATE_CONTEXT_FIELD,
        "destroy": Permission.DELETE_CONTEXT_FIELD,
        "put_legal_value": Permission.UPDATE_CONTEXT_FIELD,
        "remove_legal_value": Permission.UPDATE_CONTEXT_FIELD,
    }
    permission_in_project = Permission.UPDATE_PROJECT_CONTEXT
    conditional = ETagMixin.conditional | {"put_legal_value", "remove_legal_value"}
    field: ContextField

    def authorize(self, name: str | None = None, project_id: str | None = None, value: str = "") -> None:
        if name is not None:
            self.field = actions.access_context_field(self.caller, name, project=project_id)
            self.check_permission(project=self.field.project_id)
            return
        if project_id is not None:
            access_project(self.caller, project_id)
        elif self.action == "create":
            project_id = self.named_project
        self.check_permission(project=project_id)

    def get_current_document(self) -> dict[str, Any]:
        return self.field.document()

    @extend_schema(
        operation_id="getContextFields",
        parameters=[
            _make_include_parameter("project", "Also the fields of the projects that the caller may read.")
        ],
        responses={200: ContextFieldRecord(many=True)},
    )
    def list(self, request: ApiRequest) -> Response:
        """List the global context fields in their order; with `include=project` those of projects too."""
        everything = request.query_params.get("include") == "project"
        return Response(list_documents(self.caller, Q() if everything else GLOBAL))

    @extend_schema(
        operation_id="createContextField", request=NewContextField, responses={201: ContextFieldRecord}
    )
    def create(self, request: ApiRequest) -> Response:
        """Create a context field, global or of one project."""
        field = actions.create_context_field(self.validated(NewContextField), caller=self.caller)
        headers = {"Location": f"context/{field.name}"}
        return Response(field.document(), status=201, headers=headers)

    @extend_schema(request=NameBody, responses={200: None})
    @action(detail=False, methods=["post"])
    def validate(self, request: ApiRequest, project_id: str | None = None) -> Response:
        """Check whether a context field of this name could be created."""
        name = self.validated(NameBody)["name"]
        check_problems(name_problems(name, reserved=RESERVED_FIELDS))
        if ContextField.objects.filter(name=name).exists():
            raise NameExists(f"A context field named {name} already exists.")
        return Response()

    @extend_schema(responses={200: ContextFieldRecord})
    def retrieve(self, request: ApiRequest, name: str, project_id: str | None = None) -> Response:
        """Get a context field."""
        return Response(self.field.document())

    @extend_schema(request=ContextFieldChanges, responses={200: None})
    def update(self, request: ApiRequest, name: str, project_id: str | None = None) -> Response:
        """Update a context field. Omitted properties keep their values; the name cannot be changed."""
        changes = self.validated(ContextFieldChanges)
        expected = self.expected
        actions.update_context_field(name, changes, expected=expected, caller=self.caller, project=project_id)
        return Response()

    @extend_schema(responses={200: None})
    def destroy(self, request: ApiRequest, name: str, project_id: str | None = None) -> Response:
        """Delete the field. Constraints that name it keep working with the values in the context."""
        expected = self.expected
        actions.delete_context_field(name, expected=expected, caller=self.caller, project=project_id)
        return Response()

    @extend_schema(responses={200: ContextFieldUses})
    @action(detail=True)
    def strategies(self, request: ApiRequest, name: str, project_id: str | None = None) -> Response:
        """List what uses this field: strategies of active flags (by constraints, stickiness, user lists and
        segments), variants, default strategies, segments and projects."""
        return Response(list_context_field_uses(name, self.caller))

    @extend_schema(request=LegalValue, responses={200: None})
    @action(detail=True, methods=["post"], url_path="legal-values")
    def put_legal_value(self, request: ApiRequest, name: str, project_id: str | None = None) -> Response:
        """Add a legal value, or change its description."""
        value, expected = self.validated(LegalValue), self.expected
        actions.put_legal_value(name, value, expected=expected, caller=self.caller, project=project_id)
        return Response()

    @extend_schema(responses={200: None})
    @action(detail=True, methods=["delete"], url_path="legal-values/<text:value>")
    def remove_legal_value(
        self, request: ApiRequest, name: str, value: str, project_id: str | None = None
    ) -> Response:
        """Remove a legal value. Nothing happens if the field does not have it."""
        expected = self.expected
        actions.remove_legal_value(name, value, expected=expected, caller=self.caller, project=project_id)
        return Response()


class ProjectContextFieldViewSet(ContextFieldViewSet):
    """The context fields of one project."""

    @extend_schema(
        operation_id="getContextFieldsForProject",
        parameters=[
            _make_include_parameter("root", "Also the global fields: all that the project's flags can use.")
        ],
        responses={200: ContextFieldRecord(many=True)},
    )
    def list(self, request: ApiRequest, project_id: str) -> Response:  # type: ignore[override]
        """List the context fields of this project; with `include=root` the global ones too."""
        own = Q(project=project_id)
        with_global = request.query_params.get("include") == "root"
        return Response(list_documents(self.caller, own | GLOBAL if with_global else own))

    @extend_schema(
        operation_id="createContextFieldForProject",
        request=NewContextField,
        responses={201: ContextFieldRecord},
    )
    def create(self, request: ApiRequest, project_id: str) -> Response:  # type: ignore[override]
        """Create a context field of this project."""
        values = self.validated(NewContextField) | {"project_id": project_id}
        field = actions.create_context_field(values, caller=self.caller)
        return Response(field.document(), status=201)
