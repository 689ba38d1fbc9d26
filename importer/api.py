"""POST /api/admin/features-batch/import, /validate and /export."""

from typing import Any

import orjson
from django.conf import settings
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.parsers import BaseParser
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.errors import ValidationError
from flagadmin.http.openapi import refusals
from groups.access import Caller
from groups.authentication import ApiRequest
from importer import openapi as schema
from importer.apply.execute import import_body
from importer.body.schemas import parse_body
from importer.export import Selection, export_selection
from importer.isolation import run_isolated
from importer.models import ImportRun
from importer.plan.build import plan_import
from importer.report.validation import validation_report

TAGS = ["Import and export"]
EXAMPLE = OpenApiExample("One flag", value=schema.IMPORT_EXAMPLE, request_only=True)


class BytesParser(BaseParser):
    """JSON left as it came: the import reads it itself, faster and with all errors at once."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return stream.read()


class BatchView(APIView):
    body_limit = settings.IMPORT_BODY_LIMIT
    parser_classes = (BytesParser,)

    def body_of(self, request: ApiRequest) -> bytes:
        """Raises ContentTypeNotAccepted."""
        return request.data if isinstance(request.data, bytes) else b""


class ImportView(BatchView):
    @extend_schema(
        operation_id="importFeatures",
        summary="Import flags into a project and environment",
        description=schema.IMPORT_DESCRIPTION,
        tags=TAGS,
        request=schema.ImportBody,
        parameters=[
            OpenApiParameter("report", bool, description="Answer what happened to each flag."),
            OpenApiParameter("Prefer", str, OpenApiParameter.HEADER, description="return=representation"),
        ],
        responses={200: OpenApiResponse(description="Imported. No body unless the report is asked for.")}
        | refusals(400, 403, 413, 415),
        examples=[EXAMPLE],
    )
    def post(self, request: ApiRequest) -> Response:
        body = self.body_of(request)
        report = run_isolated(
            len(body), import_bytes, body, caller=request.user, report=wants_report(request)
        )
        return Response(report)


class ValidateView(BatchView):
    @extend_schema(
        operation_id="validateImport",
        summary="What would stand against an import",
        description=schema.VALIDATE_DESCRIPTION,
        tags=TAGS,
        request=schema.ImportBody,
        responses={200: schema.ValidationReport} | refusals(400, 403, 413, 415),
        examples=[
            EXAMPLE,
            OpenApiExample(
                "A segment is missing",
                value=schema.VALIDATE_EXAMPLE,
                response_only=True,
                status_codes=["200"],
            ),
        ],
    )
    def post(self, request: ApiRequest) -> Response:
        body = self.body_of(request)
        return Response(run_isolated(len(body), validate_bytes, body, caller=request.user))


class ExportView(APIView):
    body_limit = settings.IMPORT_BODY_LIMIT  # names of many flags

    @extend_schema(
        operation_id="exportFeatures",
        summary="Export flags as they are in an environment",
        description=schema.EXPORT_DESCRIPTION,
        tags=TAGS,
        request=schema.ExportQuery,
        parameters=[
            OpenApiParameter(
                "segments",
                str,
                enum=["full"],
                description="`full`: segments come with their `constraints`, for an import into a server like this.",
            )
        ],
        responses={200: schema.ExportResult} | refusals(400, 403, 413, 415),
        examples=[
            OpenApiExample(
                "A project", value={"environment": "production", "project": "checkout"}, request_only=True
            )
        ],
    )
    def post(self, request: ApiRequest) -> Response:
        query = schema.ExportQuery(data=request.data)
        query.is_valid(raise_exception=True)
        given = query.validated_data
        selection = Selection(
            environment=given["environment"],
            features=tuple(given.get("features", ())),
            tag=given.get("tag"),
            project=given.get("project"),
            full_segments=wants_full_segments(request),
        )
        document = export_selection(selection, caller=request.user)
        headers = {"Content-Disposition": f'attachment; filename="{file_name(selection)}"'}
        return Response(orjson.dumps(document), headers=headers if given["downloadFile"] else None)


def import_bytes(body: bytes, *, caller: Caller, report: bool) -> dict[str, Any] | None:
    run = import_body(parse_body(body), caller=caller)
    return import_report(run) if report else None


def validate_bytes(body: bytes, *, caller: Caller) -> dict[str, Any]:
    return validation_report(plan_import(parse_body(body), caller=caller))


def wants_report(request: ApiRequest) -> bool:
    """``?report=1`` or ``Prefer: return=representation`` (RFC 7240)."""
    preferences = request.headers.get("Prefer", "").replace(" ", "").lower().split(",")
    return request.query_params.get("report") in ("1", "true") or "return=representation" in preferences


def wants_full_segments(request: ApiRequest) -> bool:
    """``?segments=full``. Raises ValidationError for any other value."""
    given = request.query_params.get("segments")
    if given not in (None, "full"):
        raise ValidationError.at("segments", f'must be full or absent, not "{given[:100]}"')
    return given == "full"


def import_report(run: ImportRun) -> dict[str, Any]:
    return {
        "id": str(run.id),
        "project": run.project,
        "environment": run.environment,
        "counts": run.counts,
        "features": [report.document() for report in run.reports.all()],
    }


def file_name(selection: Selection) -> str:
    """``checkout-production.json``: letters, digits and ``-._`` only."""
    words = f"{selection.project or selection.tag or 'flags'}-{selection.environment}"
    return "".join(c if c.isascii() and (c.isalnum() or c in "-._") else "-" for c in words) + ".json"
