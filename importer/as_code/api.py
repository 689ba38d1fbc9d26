"""/api/admin/flags-as-code: the API of flagadmin pull, plan and apply, and the JSON Schemas of their files."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from flagadmin.core.document import Document
from flagadmin.core.errors import NotFound, ValidationError, choices
from flagadmin.core.http.fields import Texts
from groups.viewsets import ApiRequest, Caller, OpenView, ViewSet
from importer.api import BytesParser
from importer.as_code.actions import WrittenChanges, apply_directory, plan_directory
from importer.as_code.documents import read_directory
from importer.as_code.measure import compare_definitions, describe_users, narrow
from importer.as_code.schemas import SCHEMAS, DirectoryBody, make_json_schema, parse_directory
from importer.bulk_work import run_isolated
from importer.openapi import inline_schema
from playground.models import SavedContext
from playground.saved_contexts.effects import find_effects
from projects.definitions import Definitions


def make_document(written: WrittenChanges, *, now: datetime, caller: Caller) -> Document:
    return {
        "fingerprint": written.fingerprint,
        "changes": written.lines,
        "changeRequests": written.requests,
        "whoChanges": [
            {"project": project, "environment": environment, **_measure(environment, *states, now, caller)}
            for (project, environment), states in written.states.items()
        ],
        "notes": written.notes,
    }


def _measure(
    environment: str, before: Definitions, after: Definitions, now: datetime, caller: Caller
) -> Document:
    states = narrow(before, after)
    who = compare_definitions(environment, *states, now=now)
    effects = find_effects(
        caller, who.comparison.before, who.comparison.after, flags=who.comparison.list_differing()
    )
    saved = SavedContext.objects.filter(pk__in=effects.who).order_by("name").values_list("name", flat=True)
    return describe_users(who, *states) | {
        "savedContexts": list(saved),
        "brokenExpectations": len(effects.broken),
    }


PLAN_DESCRIPTION = """\
Says what applying these flags, segments and context fields would change, field by field, and who would get something
else. Nothing is written. What would be refused is refused here, with the same error.

A flag has what its entry says, and nothing else; but environments that it leaves out stay as they are, as do all flags,
segments and context fields that the body does not name. The projects are locked while this takes.
"""
APPLY_DESCRIPTION = """\
Stores these flags, segments and context fields: all of them in one transaction, or nothing. With the `fingerprint` of a
plan, it is refused with 409 if anything that the plan is about has changed since.

Where an environment needs a change request, one is made with what would change there, and sent for review; the same
changes are proposed once. `skipChangeRequests` changes it at once, which needs the permission to skip them.

Requires what an import of the flags would need, and for segments, context fields and archiving what each change would
need by itself.
"""


class Entries(serializers.Serializer[Any]):
    """The entries of a directory. Flags, segments and context fields have the members of their files' schemas."""

    flags = serializers.ListField(child=serializers.DictField(), help_text="`{project, flag}`")
    segments = serializers.ListField(child=serializers.DictField())
    contextFields = serializers.ListField(child=serializers.DictField())
    used = serializers.DictField(
        child=Texts(),
        help_text="`segments` and `contextFields` that the flags use.",
    )


class Outcome(serializers.Serializer[Any]):
    fingerprint = serializers.CharField()
    changes = serializers.ListField(
        child=serializers.DictField(),
        help_text="`{action, kind, name, project, environment, changes: [{part, before, after}], summary}`",
    )
    changeRequests = serializers.ListField(child=serializers.DictField())
    whoChanges = serializers.ListField(child=serializers.DictField())
    notes = Texts()


class FlagsAsCodeBody(serializers.Serializer[Any]):
    """A placeholder for the body, which ``schemas`` validates."""


class FlagsAsCodeBodySchema(OpenApiSerializerExtension):
    target_class = FlagsAsCodeBody

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        return inline_schema(DirectoryBody)


EXAMPLE = OpenApiExample(
    "One flag",
    {
        "flags": [
            {
                "project": "checkout",
                "flag": {
                    "name": "checkout-redesign",
                    "environments": {"production": {"enabled": True, "strategies": [{"name": "default"}]}},
                },
            }
        ]
    },
    request_only=True,
)


def _take_directory(**described: Any) -> Callable[[Any], Any]:
    """Declares an operation to which a directory is POSTed."""
    schema = extend_schema(request=FlagsAsCodeBody, responses={200: Outcome}, examples=[EXAMPLE], **described)
    return lambda method: schema(action(detail=False, methods=["post"], parser_classes=[BytesParser])(method))


class AsCodeViewSet(ViewSet):
    """Permissions depend on the body."""

    tags = ("Import and export",)
    permissions = {"plan": None, "apply": None}
    body_limit = settings.IMPORT_BODY_LIMIT

    @extend_schema(
        operation_id="getFlagsAsCode",
        summary="Read flags, segments and context fields as files have them",
        parameters=[
            OpenApiParameter("project", str, many=True, required=True, description="May be repeated.")
        ],
        responses={200: Entries},
    )
    def list(self, request: ApiRequest) -> Response:
        """Empty members are left out. Segments and context fields are those that the projects can use."""
        projects = request.query_params.getlist("project")
        if not projects:
            raise ValidationError.at("project", "is required: the project whose flags to read")
        return Response(read_directory(projects, caller=self.caller))

    @_take_directory(
        operation_id="planFlagsAsCode",
        summary="Say what applying flags as code would change",
        description=PLAN_DESCRIPTION,
    )
    def plan(self, request: ApiRequest) -> Response:
        return self._run(plan_bytes)

    @_take_directory(
        operation_id="applyFlagsAsCode", summary="Apply flags as code", description=APPLY_DESCRIPTION
    )
    def apply(self, request: ApiRequest) -> Response:
        return self._run(apply_bytes)

    def _run(self, work: Callable[..., Any]) -> Response:
        body = self.request.data if isinstance(self.request.data, bytes) else b""
        return Response(run_isolated(len(body), work, body, caller=self.caller))


def plan_bytes(body: bytes, *, caller: Caller) -> dict[str, Any]:
    written = plan_directory(parse_directory(body), caller=caller)
    return make_document(written, now=timezone.now(), caller=caller)


def apply_bytes(body: bytes, *, caller: Caller) -> dict[str, Any]:
    written = apply_directory(parse_directory(body), caller=caller)
    return make_document(written, now=timezone.now(), caller=caller)


class FileSchemaView(OpenView):
    """Schemas for editors, which send no token. They reveal nothing about the installation."""

    tags = ("Import and export",)

    @extend_schema(
        operation_id="getFileSchema",
        summary="Get the JSON Schema of a kind of file",
        parameters=[OpenApiParameter("name", str, OpenApiParameter.PATH, enum=list(SCHEMAS))],
        responses={200: OpenApiTypes.OBJECT},
        auth=[],
    )
    def get(self, request: Request, name: str) -> Response:
        """The files of flags as code: of a flag, a segment, a context field, and flagadmin.yaml. Needs no token."""
        if name not in SCHEMAS:
            raise NotFound(f"Schema {name[:100]} not found. Available: {choices(SCHEMAS)}.")
        return Response(make_json_schema(name))
