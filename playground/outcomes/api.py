"""/api/admin/playground/assignments: who had a flag at the time of something that happened.

Describes assignments in the OpenAPI document, and reads their query string.
"""

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers as s
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.response import Response

from flagadmin.core.errors import ContentTypeNotAccepted
from flagadmin.core.http.fields import Body, ListOf, validate_body
from groups.viewsets import ApiRequest, ViewSet
from playground.outcomes.answer import DEFAULT_LAG, MAX_CHANGES, MAX_LAG, SmallAnswer
from playground.outcomes.history import MAX_FLAGS
from playground.outcomes.incident import GENERATED, LIKELY
from playground.outcomes.runs import MAX_USERS, create_assignments, create_incident
from playground.outcomes.table import MAX_ROWS, TooLarge
from playground.user_runs.evaluate import CHUNK_CELLS
from playground.user_runs.runs import AT_ONCE
from playground.user_runs.serializers import RUN_EXAMPLE, AssignedFlag, UserRunResult, make_result_document

DESCRIPTION = f"""\
Answers a table of users and times with what each of them had of a flag at that time. Nothing needs to be tracked:
evaluation is deterministic, and flagadmin keeps every state of a flag.

The table is CSV with a header, or JSON lines; either may be compressed with gzip. Or it is Parquet, if the server has
the packages of `flagadmin[experiments]`. Its columns are context fields as in
`/playground/users`, `time`, and any others, which are returned as they are. `time` is ISO 8601 (UTC without an offset),
or seconds or milliseconds since 1970. Without a column `currentTime`, it is also the current time that flags see.

The answer is CSV: the rows in their order with five more columns for each flag. If you ask for several flags, the names
of these columns begin with that of the flag (`dark-theme.result`).

- `result`: `on` or `off`; `unknown` if it depends on a field that the table lacks, on what only an SDK can tell, or on
  a project that you may not read; `random` if it is drawn on each call; `in between` if the answer changed less than
  `lag` seconds before, so that the application may still have had the earlier one. A flag that did not exist is `off`.
- `variant`, if there is one. Where the variant is not certain, neither is the result.
- `since`: when the last change was made that altered the row's answer. Empty if none did, or if the answer before that
  change is unknown.
- `change`: the id of the audit event of that change. Empty if it was made outside flagadmin.
- `lacks`: the fields that the table lacks and on which an unknown answer may depend.

Before the upgrade to 1.4.0, changes by plain SQL left no trace, and the answer does not have them.

Above {AT_ONCE:,} rows times flags, {CHUNK_CELLS:,} cells, {settings.IMPORT_BODY_LIMIT // 1_000_000:,} MB unpacked, or
{MAX_CHANGES:,} changes of the flags together, the answer is 202 with a run, as that of `/playground/users`:
`/playground/users/ID` has its progress and, once it is done, the counts as `assigned`; `/playground/users/ID/result`
has the rows. A run has at most {MAX_ROWS:,} rows and is its caller's own.
"""
FILE = {"type": "string", "maxLength": settings.IMPORT_BODY_LIMIT}
FILE_EXAMPLE = "userId,time,revenue\n42,2026-11-21T14:05:00Z,12.50\n7,2026-11-21T14:05:00Z,0\n"
ANSWER_EXAMPLE = """\
userId,time,revenue,result,variant,since,change,lacks
42,2026-11-21T14:05:00Z,12.50,on,blue,2026-11-20T09:00:00.000Z,1204,
7,2026-11-21T14:05:00Z,0,off,,,,
"""


class AssignmentQuery(Body):
    environment = s.CharField()
    flag = ListOf(
        child=s.CharField(),
        min_length=1,
        max_length=MAX_FLAGS,
        help_text="Flags; may be given several times.",
    )
    lag = s.IntegerField(
        default=DEFAULT_LAG,
        min_value=0,
        max_value=MAX_LAG,
        help_text="Seconds until applications notice a change: how often their SDKs ask.",
    )
    summary = s.BooleanField(default=False, help_text="Answer the counts as JSON instead of the rows.")
    spreadsheet = s.BooleanField(
        default=False, help_text="Put an apostrophe before text that spreadsheets would run as a formula."
    )
    query = s.CharField(
        default="",
        allow_blank=True,
        max_length=100,
        help_text="The name of a query that the operator has configured, whose rows are the table. The body is empty, "
        "the answer 202. Whoever may update flags of the query's project may name it; admins may name any.",
    )


INCIDENT_DESCRIPTION = f"""\
For each change of an environment after `from` and until `to`: how many of the affected users noticed it, that is, got
another result of some flag, and how many of the others. One transaction is one change.

`affected` and `others` are CSV, or lines of JSON, with the context fields of a user in each row, as in
`/playground/users`; at most {MAX_USERS:,} each. Without `others`, the users of your own last file stand in (`own`), or
{GENERATED:,} generated ones (`generated`).

The answer is a run, as that of `/playground/users`: `/playground/users/ID` has its state and, once it is done, `found`;
`/playground/users/ID/result` has the same as CSV. Few users and changes are evaluated at once.

- `changes` are ranked by `p`, that of Fisher's exact test (one-sided): how probable it is that so many of the affected
  noticed the change by chance. `pAdjusted` is corrected for the number of changes (Benjamini and Hochberg);
  `isLikely` means at most {LIKELY}. `oddsRatio` has half a user added to each number. Changes that no affected user
  noticed are last.
- `known` leaves out users whose result is unknown, because the table lacks a field on which it depends.
- `common` is what the affected had of flags at `from` and the others had not, for causes older than the changes. It
  is empty if the others are generated.

Numbers show what belongs together, not what causes what.
"""
INCIDENT_EXAMPLE = {
    "environment": "production",
    "from": "2026-11-21T18:00:00Z",
    "to": "2026-11-21T19:00:00Z",
    "affected": "userId\n42\n7\n",
}
FOUND_EXAMPLE = RUN_EXAMPLE | {
    "kind": "incident",
    "flag": None,
    "found": {
        "environment": "production",
        "from": "2026-11-21T18:00:00.000Z",
        "to": "2026-11-21T19:00:00.000Z",
        "affected": 200,
        "others": 1000,
        "othersAre": "generated",
        "changes": [
            {
                "change": "1204",
                "at": "2026-11-21T18:16:00.000Z",
                "flags": [
                    {"name": "one-click-pay", "affected": {"offToOn": 194}, "others": {"offToOn": 300}}
                ],
                "moreFlags": 0,
                "noticed": {"affected": 194, "others": 300},
                "known": {"affected": 200, "others": 1000},
                "oddsRatio": 69.9,
                "p": 2.1e-75,
                "pAdjusted": 1.7e-74,
                "isLikely": True,
                "sentence": "one-click-pay turned on for 194 of 200 affected users and 300 of 1,000 others.",
            }
        ],
        "common": [],
    },
}


class IncidentBody(Body):
    environment = s.CharField()
    to = s.DateTimeField()
    affected = s.CharField(max_length=settings.COMPARE_BODY_LIMIT, trim_whitespace=False)
    others = s.CharField(max_length=settings.COMPARE_BODY_LIMIT, trim_whitespace=False, required=False)

    def get_fields(self) -> dict[str, Any]:
        return super().get_fields() | {"from": s.DateTimeField()}


class AssignmentSummary(s.Serializer[Any]):
    rows = s.IntegerField()
    flags = AssignedFlag(many=True)


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
        description=INCIDENT_DESCRIPTION,
        request=IncidentBody,
        responses={202: UserRunResult},
        examples=[
            OpenApiExample("Two users", value=INCIDENT_EXAMPLE, request_only=True),
            OpenApiExample("Found", value=FOUND_EXAMPLE, response_only=True, status_codes=["202"]),
        ],
    )
    def create(self, request: ApiRequest) -> Response:
        body: dict[str, Any] = validate_body(IncidentBody(data=request.data))
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
        description=DESCRIPTION,
        parameters=[AssignmentQuery],
        request={parser.media_type: FILE for parser in TABLE_PARSERS},
        responses={
            (200, "text/csv"): OpenApiTypes.STR,
            (200, "application/json"): AssignmentSummary,
            202: UserRunResult,
        },
        examples=[
            OpenApiExample("Two orders", value=FILE_EXAMPLE, request_only=True, media_type="text/csv"),
            OpenApiExample(
                "Assigned",
                value=ANSWER_EXAMPLE,
                response_only=True,
                status_codes=["200"],
                media_type="text/csv",
            ),
        ],
    )
    def create(self, request: ApiRequest) -> HttpResponse | Response:
        query = AssignmentQuery(data=request.query_params)
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
