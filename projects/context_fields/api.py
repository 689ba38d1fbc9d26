"""/api/admin/context and /api/admin/projects/:projectId/context: context fields."""

from typing import Any

from django.db.models import Q
from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.errors import NameExists, ValidationError
from flagadmin.http.fields import Body, NameBody, validated
from flagadmin.http.openapi import refusals
from groups.access import Caller
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import access_project
from projects.context_fields import actions
from projects.context_fields.documents import context_field_document
from projects.models import ContextField
from projects.project_scope import visible
from projects.shared_rules import name_problems
from projects.used_by import context_field_uses
from projects.used_by_counts import UNUSED, context_field_usage
from projects.used_by_serializers import ProjectUse, SegmentUse, SegmentUses, VariantsUse

TAGS = ["Context"]
GLOBAL = Q(project=None)

# Views that hang in two places take their operation ids from the address.


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
    name = serializers.CharField(help_text="1 to 100 of letters, digits and - . _ ~")
    project = serializers.CharField(
        source="project_id", required=False, allow_null=True, help_text="The one project it is for."
    )


class ContextFieldRecord(NewContextField):
    createdAt = serializers.DateTimeField()
    usedInFeatures = serializers.IntegerField(
        required=False, help_text="Active flags that read it: constraints, segments, stickiness, user lists."
    )
    usedInProjects = serializers.IntegerField(required=False)


class ContextFieldUses(SegmentUses):
    variants = VariantsUse(many=True, help_text="Flags whose variants are kept by it.")
    segments = SegmentUse(many=True, help_text="Segments with a constraint on it.")
    projects = ProjectUse(many=True, help_text="Projects with it as their default stickiness.")


def named_project(request: ApiRequest) -> str | None:
    """The project that a body names, read before the body is validated: permission errors come first."""
    named = request.data.get("project") if isinstance(request.data, dict) else None
    return named if isinstance(named, str) and named else None


def _include(value: str, description: str) -> OpenApiParameter:
    return OpenApiParameter("include", enum=[value], description=description)


def listed(caller: Caller, where: Q) -> list[dict[str, Any]]:
    fields = visible(ContextField.objects.filter(where), caller)
    usage = context_field_usage(caller)
    return [context_field_document(field) | usage.get(field.name, UNUSED) for field in fields]


class ContextFieldsView(APIView):
    @extend_schema(
        operation_id="getContextFields",
        tags=TAGS,
        parameters=[_include("project", "Also the fields of the projects that the caller may read.")],
        responses={200: ContextFieldRecord(many=True)} | refusals(403),
    )
    def get(self, request: ApiRequest) -> Response:
        """All global context fields, in their order; with ``include=project`` those of projects too."""
        everything = request.query_params.get("include") == "project"
        return Response(listed(request.user, Q() if everything else GLOBAL))

    @extend_schema(
        operation_id="createContextField",
        tags=TAGS,
        request=NewContextField,
        responses={201: ContextFieldRecord} | refusals(400, 403, 409, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        actions.check_may_create(request.user, named_project(request))
        values = validated(NewContextField(data=request.data))
        field = actions.create_context_field(values, caller=request.user)
        headers = {"Location": f"context/{field.name}"}
        return Response(context_field_document(field), status=201, headers=headers)


class ProjectContextFieldsView(APIView):
    @extend_schema(
        operation_id="getContextFieldsForProject",
        tags=TAGS,
        parameters=[_include("root", "Also the global fields: all that the project's flags can use.")],
        responses={200: ContextFieldRecord(many=True)} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, project_id: str) -> Response:
        """The context fields of this project; with ``include=root`` the global ones too."""
        access_project(request.user, project_id)
        own = Q(project=project_id)
        return Response(
            listed(request.user, own | GLOBAL if request.query_params.get("include") == "root" else own)
        )

    @extend_schema(
        operation_id="createContextFieldForProject",
        tags=TAGS,
        request=NewContextField,
        responses={201: ContextFieldRecord} | refusals(400, 403, 404, 409, 415),
    )
    def post(self, request: ApiRequest, project_id: str) -> Response:
        access_project(request.user, project_id)
        actions.check_may_create(request.user, project_id)
        values = validated(NewContextField(data=request.data)) | {"project_id": project_id}
        field = actions.create_context_field(values, caller=request.user)
        return Response(context_field_document(field), status=201)


class ValidateContextFieldView(APIView):
    @extend_schema(
        tags=TAGS,
        request=NameBody,
        responses={200: None} | refusals(400, 403, 409, 415),
    )
    def post(self, request: ApiRequest, project_id: str | None = None) -> Response:
        """Whether a context field of this name could be created."""
        if project_id:
            access_project(request.user, project_id)
        actions.check_may_create(request.user, project_id)
        name = validated(NameBody(data=request.data))["name"]
        if problems := list(name_problems(name)):
            raise ValidationError.of(problems)
        if ContextField.objects.filter(name=name).exists():
            raise NameExists(f"A context field named {name} already exists.")
        return Response()


class ChangesContextField(APIView):
    def authorise(self, request: ApiRequest, name: str, project_id: str | None) -> None:
        permission = Permission.UPDATE_CONTEXT_FIELD
        actions.access_context_field_with(request.user, name, permission, project=project_id)


class ContextFieldView(ChangesContextField):
    @extend_schema(
        tags=TAGS,
        responses={200: ContextFieldRecord} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, name: str, project_id: str | None = None) -> Response:
        field = actions.access_context_field(request.user, name, project=project_id)
        return Response(context_field_document(field))

    @extend_schema(
        tags=TAGS,
        request=ContextFieldChanges,
        responses={200: None} | refusals(400, 403, 404, 415),
    )
    def put(self, request: ApiRequest, name: str, project_id: str | None = None) -> Response:
        """Change what is given; the name stays."""
        self.authorise(request, name, project_id)
        changes = validated(ContextFieldChanges(data=request.data))
        actions.update_context_field(name, changes, caller=request.user, project=project_id)
        return Response()

    @extend_schema(tags=TAGS, responses={200: None} | refusals(403, 404))
    def delete(self, request: ApiRequest, name: str, project_id: str | None = None) -> Response:
        """Delete the field. Constraints that name it keep working on what the context brings."""
        actions.delete_context_field(name, caller=request.user, project=project_id)
        return Response()


class ContextFieldStrategiesView(APIView):
    @extend_schema(
        tags=TAGS,
        responses={200: ContextFieldUses} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, name: str, project_id: str | None = None) -> Response:
        """What reads this field: strategies of active flags (by constraints, stickiness, user lists and segments),
        variants, default strategies, segments and projects."""
        actions.access_context_field(request.user, name, project=project_id)
        return Response(context_field_uses(name, request.user))


class LegalValuesView(ChangesContextField):
    @extend_schema(
        tags=TAGS,
        request=LegalValue,
        responses={200: None} | refusals(400, 403, 404, 415),
    )
    def post(self, request: ApiRequest, name: str, project_id: str | None = None) -> Response:
        """Add a legal value, or change its description."""
        self.authorise(request, name, project_id)
        value = validated(LegalValue(data=request.data))
        actions.put_legal_value(name, value, caller=request.user, project=project_id)
        return Response()


class LegalValueView(APIView):
    @extend_schema(tags=TAGS, responses={200: None} | refusals(403, 404))
    def delete(self, request: ApiRequest, name: str, value: str, project_id: str | None = None) -> Response:
        """Remove a legal value; one that is not there is no error."""
        actions.remove_legal_value(name, value, caller=request.user, project=project_id)
        return Response()


PROJECT = "projects/<str:project_id>/context"
urlpatterns = [
    path("context", ContextFieldsView.as_view()),
    path("context/validate", ValidateContextFieldView.as_view()),
    path("context/<str:name>", ContextFieldView.as_view()),
    path("context/<str:name>/strategies", ContextFieldStrategiesView.as_view()),
    path("context/<str:name>/legal-values", LegalValuesView.as_view()),
    path("context/<str:name>/legal-values/<path:value>", LegalValueView.as_view()),
    path(PROJECT, ProjectContextFieldsView.as_view()),
    path(f"{PROJECT}/validate", ValidateContextFieldView.as_view()),
    path(f"{PROJECT}/<str:name>", ContextFieldView.as_view()),
    path(f"{PROJECT}/<str:name>/strategies", ContextFieldStrategiesView.as_view()),
    path(f"{PROJECT}/<str:name>/legal-values", LegalValuesView.as_view()),
    path(f"{PROJECT}/<str:name>/legal-values/<path:value>", LegalValueView.as_view()),
]
