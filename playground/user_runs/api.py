"""/api/admin/playground/users: evaluating flags for a CSV of users."""

from typing import Any

from django.conf import settings
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.response import Response

from flagadmin.core.errors import ContentTypeNotAccepted
from groups.authentication import ApiRequest
from groups.viewsets import ViewSet
from playground.user_runs import runs
from playground.user_runs import serializers as schema
from playground.user_runs.download import make_csv_download


class CsvParser(BaseParser):
    """Leaves the file unread: a run reads it row by row."""

    media_type = "text/csv"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return stream.read()


class UserRunViewSet(ViewSet):
    """Everybody may evaluate the flags of projects that they can read, and sees only their own runs."""

    tags = ("Playground",)
    lookup_url_kwarg = "run_id"
    permissions = {"create": None, "destroy": None}
    body_limit = settings.IMPORT_BODY_LIMIT
    parser_classes = (CsvParser,)

    def authorize(self, run_id: str | None = None) -> None:
        if run_id is not None:
            self.run = runs.access_run(self.caller, run_id)

    @extend_schema(
        operation_id="createUserRun",
        summary="Evaluate flags for every user of a CSV file",
        description=schema.DESCRIPTION,
        parameters=[schema.UserRunQuery],
        request={"text/csv": schema.FILE},
        responses={202: schema.UserRunResult},
        examples=[
            OpenApiExample("Two users", value=schema.FILE_EXAMPLE, request_only=True, media_type="text/csv"),
            OpenApiExample(
                "Evaluated at once", value=schema.RESULT_EXAMPLE, response_only=True, status_codes=["202"]
            ),
        ],
    )
    def create(self, request: ApiRequest) -> Response:
        query = schema.UserRunQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        parameters = query.validated_data
        try:
            body = request.data if isinstance(request.data, bytes) else b""
        except UnsupportedMediaType as error:
            raise ContentTypeNotAccepted(f"Send text/csv. {error.detail}") from error
        run = runs.create_run(
            body,
            caller=self.caller,
            environment=parameters["environment"],
            projects=parameters.get("project") or None,
            flag=parameters.get("flag", ""),
        )
        headers = {"Location": f"users/{run.pk}"}
        return Response(schema.make_result_document(run), status=202, headers=headers)

    @extend_schema(operation_id="getUserRuns", responses={200: schema.UserRunList})
    def list(self, request: ApiRequest) -> Response:
        """List the caller's runs of users, the latest first."""
        return Response({"runs": list(map(schema.run_document, runs.list_own_runs(self.caller)))})

    @extend_schema(
        operation_id="getUserRun",
        responses={200: schema.UserRunResult},
        examples=[OpenApiExample("Done", value=schema.RESULT_EXAMPLE, response_only=True)],
    )
    def retrieve(self, request: ApiRequest, run_id: str) -> Response:
        """Get the progress of a run of users and, once it is done, what they get of each flag."""
        return Response(schema.make_result_document(self.run))

    @extend_schema(
        operation_id="getUserRunResult",
        parameters=schema.RESULT_PARAMETERS,
        responses={(200, "text/csv"): OpenApiTypes.STR},
    )
    @action(detail=True, methods=["get"])
    def result(self, request: ApiRequest, run_id: str) -> StreamingHttpResponse:
        """Get the result of a run of users as CSV, a line for each user and flag.

        A result above 50 MB is only sent as gzip, for `Accept-Encoding: gzip`. Answers 409 until the run is done.
        """
        return make_csv_download(request, self.run)

    @extend_schema(operation_id="removeUserRun", responses={204: None})
    def destroy(self, request: ApiRequest, run_id: str) -> Response:
        """Delete a run of users with its result; one that is being evaluated stops."""
        runs.delete_run(self.caller, self.run.pk)
        return Response(status=204)
