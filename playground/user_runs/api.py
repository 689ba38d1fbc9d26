"""/api/admin/playground/users: evaluating flags for a CSV of users."""

from typing import Any

from django.conf import settings
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers as s
from rest_framework.decorators import action
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.response import Response

from flagadmin.core.errors import ContentTypeNotAccepted
from flagadmin.core.http.fields import Body, Texts
from groups.viewsets import ApiRequest, ViewSet
from playground.user_runs import runs
from playground.user_runs.evaluate import SHARE
from playground.user_runs.runs import make_csv_download
from playground.user_runs.serializers import (
    RESULT_PARAMETERS,
    RUN_EXAMPLE,
    UserRunList,
    UserRunResult,
    make_result_document,
    run_document,
)

BODY_MB = settings.IMPORT_BODY_LIMIT // 1_000_000
RESULTS_MB = settings.USER_RESULTS_BYTES // 1_000_000
RESULT_MB = RESULTS_MB // SHARE

DESCRIPTION = f"""\
Evaluates flags for every user of a CSV file, up to 100,000, beside the requests of others.

The columns are context fields: `userId`, `sessionId`, `remoteAddress`, `appName`, `environment`, `currentTime`, a
context field that exists, or any other as `properties.NAME`. Commas, semicolons or tabs part them; an empty cell is a
field that is not given. The file has at most {BODY_MB:,} MB, and users times flags are at most 10,000,000. The
compressed result has at most {RESULT_MB:,} MB, all results together at most {RESULTS_MB:,} MB: a larger one is refused
from an estimate before the run begins (400), and so is one for which there is no space now (409).

The answer has the `id` under which the run's progress and result are found; a short file is evaluated at once.
`flags` counts what users get of each flag. The result is a CSV with a line for each user and flag: `row` (the header is
row 1), `userId` and `sessionId` if the file has them, `flag`, `result` (`On`, `Off`, `Can't tell`, `On for 30 % of
calls`), `variant` and `reason`.

Everybody may evaluate the flags of projects that they can read. A run is its caller's own; the last 5 are kept, for 7
days.
"""
FILE = {"type": "string", "maxLength": settings.IMPORT_BODY_LIMIT}
FILE_EXAMPLE = "userId,country,properties.plan\n42,NO,pro\n7,DE,\n"
RESULT_EXAMPLE = RUN_EXAMPLE | {
    "flags": [
        {
            "name": "dark-theme",
            "results": [
                {"isEnabled": False, "variant": None, "contexts": 1.0},
                {"isEnabled": True, "variant": None, "contexts": 1.0},
            ],
        }
    ]
}


class UserRunQuery(Body):
    environment = s.CharField()
    project = Texts(
        required=False, help_text="Only flags of these projects; without it, of all you can read."
    )
    flag = s.CharField(required=False, help_text="Only this flag.")


class CsvParser(BaseParser):
    """Leaves the file unread: a run reads it row by row."""

    media_type = "text/csv"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return stream.read()


class UserRunViewSet(ViewSet):
    """Every user may evaluate the flags of projects that they can read, and sees only their own runs."""

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
        description=DESCRIPTION,
        parameters=[UserRunQuery],
        request={"text/csv": FILE},
        responses={202: UserRunResult},
        examples=[
            OpenApiExample("Two users", value=FILE_EXAMPLE, request_only=True, media_type="text/csv"),
            OpenApiExample(
                "Evaluated at once", value=RESULT_EXAMPLE, response_only=True, status_codes=["202"]
            ),
        ],
    )
    def create(self, request: ApiRequest) -> Response:
        query = UserRunQuery(data=request.query_params)
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
        return Response(make_result_document(run), status=202, headers=headers)

    @extend_schema(operation_id="getUserRuns", responses={200: UserRunList})
    def list(self, request: ApiRequest) -> Response:
        """List the caller's runs of users, the latest first."""
        return Response({"runs": list(map(run_document, runs.list_own_runs(self.caller)))})

    @extend_schema(
        operation_id="getUserRun",
        responses={200: UserRunResult},
        examples=[OpenApiExample("Done", value=RESULT_EXAMPLE, response_only=True)],
    )
    def retrieve(self, request: ApiRequest, run_id: str) -> Response:
        """Get the progress of a run of users and, once it is done, what they get of each flag."""
        return Response(make_result_document(self.run))

    @extend_schema(
        operation_id="getUserRunResult",
        parameters=RESULT_PARAMETERS,
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
