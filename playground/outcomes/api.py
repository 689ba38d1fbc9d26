"""/api/admin/playground/assignments: who had a flag at the time of something that happened."""

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.response import Response

from flagadmin.core.errors import ContentTypeNotAccepted
from flagadmin.core.http.fields import validate_body
from groups.viewsets import ApiRequest, ViewSet
from playground.outcomes import serializers as schema
from playground.outcomes.answer import SmallAnswer
from playground.outcomes.runs import create_assignments, create_incident
from playground.outcomes.table import TooLarge
from playground.user_runs.serializers import UserRunResult, make_result_document


class CsvParser(BaseParser):
    """Leaves the table unread, in whichever form it is."""

    media_type = "text/csv"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return stream.read()


class JsonLinesParser(CsvParser):
    media_type = "application/x-ndjson"


class GzipParser(CsvParser):
    media_type = "application/gzip"


class ParquetParser(CsvParser):
    media_type = "application/vnd.apache.parquet"


TABLE_PARSERS: tuple[type[BaseParser], ...] = (CsvParser, JsonLinesParser, GzipParser, ParquetParser)
TABLE_TYPES = (
    ", ".join(parser.media_type for parser in TABLE_PARSERS[:-1]) + f" or {ParquetParser.media_type}"
)


class IncidentViewSet(ViewSet):
    """Everybody may ask about the flags that they can read. An answer is its caller's own."""

    tags = ("Playground",)
    permissions = {"create": None}
    body_limit = settings.COMPARE_BODY_LIMIT

    @extend_schema(
        operation_id="findChange",
        summary="Find out which change affected users",
        description=schema.INCIDENT_DESCRIPTION,
        request=schema.IncidentBody,
        responses={202: UserRunResult},
        examples=[
            OpenApiExample("Two users", value=schema.INCIDENT_EXAMPLE, request_only=True),
            OpenApiExample("Found", value=schema.FOUND_EXAMPLE, response_only=True, status_codes=["202"]),
        ],
    )
    def create(self, request: ApiRequest) -> Response:
        body: dict[str, Any] = validate_body(schema.IncidentBody(data=request.data))
        others = body.get("others")
        run = create_incident(
            body["affected"].encode(),
            None if others is None else others.encode(),
            caller=self.caller,
            environment=body["environment"],
            since=body["from"],
            until=body["to"],
        )
        return Response(make_result_document(run), status=202, headers={"Location": f"users/{run.pk}"})


class AssignmentViewSet(ViewSet):
    """Everybody may ask about the flags that they can read, or could have read."""

    tags = ("Playground",)
    permissions = {"create": None}
    body_limit = settings.IMPORT_BODY_LIMIT
    parser_classes = TABLE_PARSERS

    @extend_schema(
        operation_id="getAssignments",
        summary="Find out who had a flag at a time",
        description=schema.DESCRIPTION,
        parameters=[schema.AssignmentQuery],
        request={parser.media_type: schema.FILE for parser in TABLE_PARSERS},
        responses={
            (200, "text/csv"): OpenApiTypes.STR,
            (200, "application/json"): schema.AssignmentSummary,
            202: UserRunResult,
        },
        examples=[
            OpenApiExample("Two orders", value=schema.FILE_EXAMPLE, request_only=True, media_type="text/csv"),
            OpenApiExample(
                "Assigned",
                value=schema.ANSWER_EXAMPLE,
                response_only=True,
                status_codes=["200"],
                media_type="text/csv",
            ),
        ],
    )
    def create(self, request: ApiRequest) -> HttpResponse | Response:
        query = schema.AssignmentQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        options: dict[str, Any] = query.validated_data
        wants_summary = options.pop("summary")
        environment, flags = options["environment"], options["flag"]
        if options["query"]:
            return self._begin(b"", options)
        try:
            body = request.data if isinstance(request.data, bytes) else b""
        except UnsupportedMediaType as error:
            raise ContentTypeNotAccepted(f"Send {TABLE_TYPES}. {error.detail}") from error
        try:
            answer = SmallAnswer(
                self.caller, environment, flags, lag=options["lag"], spreadsheet=options["spreadsheet"]
            )
            rows = answer.answer(body)
        except TooLarge:
            return self._begin(body, options)
        if wants_summary:
            return Response(answer.summarize())
        return HttpResponse(rows, content_type="text/csv; charset=utf-8")

    def _begin(self, body: bytes, options: dict[str, Any]) -> Response:
        run = create_assignments(
            body,
            caller=self.caller,
            environment=options["environment"],
            flags=options["flag"],
            lag=options["lag"],
            query=options["query"],
        )
        return Response(make_result_document(run), status=202, headers={"Location": f"users/{run.pk}"})
