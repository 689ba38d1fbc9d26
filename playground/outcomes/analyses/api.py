"""/api/admin/projects/ID/features/NAME/analyses: did it work?

Describes analyses in the OpenAPI document, and reads their query string.
"""

from typing import Any

from django.conf import settings
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers as s
from rest_framework.decorators import action
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.response import Response

from flagadmin.core.errors import ContentTypeNotAccepted
from flagadmin.core.http.fields import Body, ListOf, Moment
from flagadmin.core.lists.pages import make_csv_response
from groups.viewsets import ApiRequest
from playground.models import Analysis
from playground.outcomes.analyses.actions import (
    CSV_COLUMNS,
    MAX_NAME_LENGTH,
    MAX_OF_FLAG,
    access_analysis,
    create_analysis,
    delete_analysis,
    list_analyses,
    list_csv_rows,
    make_analysis_document,
    read_result,
)
from playground.outcomes.analyses.design import (
    KEEP,
    KINDS,
    LEAVE_OUT,
    MAX_COLUMN_LENGTH,
    MAX_MEASURES,
    MAX_PERIOD,
    MAX_SEGMENTS,
    METHODS,
    Design,
    read_measures,
)
from playground.outcomes.api import TABLE_PARSERS, TABLE_TYPES
from playground.outcomes.experiment import BEFORE, EXTRA
from playground.outcomes.table import MAX_ROWS
from playground.user_runs.serializers import RESULT_PARAMETERS
from projects.access import access_flag
from projects.models import Flag
from projects.project_scope import OnFlagViewSet

DESCRIPTION = f"""\
Analyzes what came of a flag, from a table of what its users did. Nothing needs to be tracked beforehand: flagadmin
finds out which side of the flag (`off`, `on` or a variant) each unit had at its first row in the period, `from` until
before `to`. A unit is a value of the field by which the flag divides its users.

The table is as that of `/playground/assignments`: CSV with a header or JSON lines, also with gzip, or Parquet, with the
columns `time`, the context fields on which the flag depends, and the measures; at most {MAX_ROWS:,} rows and
{settings.IMPORT_BODY_LIMIT // 1_000_000:,} MB. It needs a row for each user who came, not only for those who bought.
Cells of measures are numbers, `true`, `false` or empty.

- `proportion`: the share of units with anything but 0 in the column.
- `mean`: the mean of the units' sums.
- `ratio`: `revenue/visits`, the sum of one column divided by that of the other, or `revenue`, by its number of cells.

Together, 1 to {MAX_MEASURES} measures. Rows before `from` serve the check that the sides were alike before and, with
`covariate={BEFORE}`, make the intervals narrower (CUPED).

Only users whom the flag divided then are compared: not those to whom its rules give the same in any case. If the shares
changed in the period, each part of it is analyzed alone, and the estimates are combined.

The answer has the `id` of the analysis, which is made in a process beside the requests. Everybody may do this for the
flags that they can read. An analysis is kept with its result until it is deleted, at most {MAX_OF_FLAG} of a flag. Its
rows are deleted once it has ended. Without `{EXTRA}` on the server, the answer is 409.
"""
FILE = {"type": "string", "maxLength": settings.IMPORT_BODY_LIMIT}
FILE_EXAMPLE = "userId,time,bought,revenue\n42,2026-11-21T14:05:00Z,1,12.50\n7,2026-11-21T14:05:00Z,0,\n"
RECORD_EXAMPLE = {
    "id": "0b0f3a0e-8a4b-4a52-9e0f-1f0e4f6f7c11",
    "name": "Does one click sell more?",
    "project": "checkout",
    "feature": "one-click-pay",
    "environment": "production",
    "state": "done",
    "from": "2026-11-01T00:00:00.000Z",
    "to": "2026-11-15T00:00:00.000Z",
    "unit": None,
    "measures": [{"kind": "proportion", "name": "bought"}],
    "control": None,
    "covariate": None,
    "exposure": None,
    "segments": [],
    "crossovers": "keep",
    "method": "sequential",
    "fileName": None,
    "rows": 20_000,
    "rowsDone": 20_000,
    "createdBy": "aisha",
    "createdAt": "2026-11-15T09:00:00.000Z",
    "finishedAt": "2026-11-15T09:00:02.120Z",
    "problem": None,
}
RESULT_EXAMPLE = RECORD_EXAMPLE | {
    "result": {
        "sentence": "On raised bought by 12.1 %.",
        "unit": "userId",
        "rows": 20_000,
        "control": "off",
        "sides": ["off", "on"],
        "counts": {"units": 20_000, "crossovers": 0},
        "leftOut": {},
        "lacks": {},
        "changes": [],
        "checks": [],
        "shares": [],
        "comparisons": [],
        "breakdowns": [],
    }
}


class AnalysisQuery(Body):
    environment = s.CharField()
    name = s.CharField(max_length=MAX_NAME_LENGTH)
    to = Moment(help_text="Exclusive.")
    unit = s.CharField(
        default="",
        allow_blank=True,
        max_length=MAX_COLUMN_LENGTH,
        help_text="The field by which the flag divided its users, if several.",
    )
    control = s.CharField(
        default="",
        allow_blank=True,
        max_length=MAX_COLUMN_LENGTH,
        help_text="The side with which others are compared: `off`, or a variant.",
    )
    covariate = s.CharField(
        default="",
        allow_blank=True,
        max_length=MAX_COLUMN_LENGTH,
        help_text=f"A column that says something of a unit from before, or `{BEFORE}`: the measure before `from`.",
    )
    exposure = s.CharField(
        default="",
        allow_blank=True,
        max_length=MAX_COLUMN_LENGTH,
        help_text="A column; units count from their first row with a number other than 0, or `true`, in it.",
    )
    segment = ListOf(
        child=s.CharField(),
        default=list,
        max_length=MAX_SEGMENTS,
        help_text="Columns to break the result down by; may be given several times.",
    )
    crossovers = s.ChoiceField(
        (KEEP, LEAVE_OUT),
        default=KEEP,
        help_text="What becomes of units that changed sides in the period: they keep their first, or are left out. If "
        "the shares changed in the period, leaving them out favors a side.",
    )
    method = s.ChoiceField(
        METHODS,
        default=METHODS[0],
        help_text="`sequential`: intervals hold however often they are looked at. `fixed`: looked at once, at the end.",
    )

    query = s.CharField(
        default="",
        allow_blank=True,
        max_length=100,
        help_text="The name of a query that the operator has configured, whose rows are the table. The body is empty.",
    )

    def get_fields(self) -> dict[str, Any]:
        measures: dict[str, Any] = {
            kind: ListOf(
                child=s.CharField(),
                default=list,
                max_length=MAX_MEASURES,
                help_text="May be given several times.",
            )
            for kind in KINDS
        }
        return super().get_fields() | {
            "from": Moment(help_text=f"At most {MAX_PERIOD.days} days before `to`."),
            **measures,
        }


class AnalysisMeasure(s.Serializer[Any]):
    kind = s.ChoiceField(KINDS)
    name = s.CharField()


class AnalysisRecord(s.Serializer[Any]):
    id = s.UUIDField()
    name = s.CharField()
    project = s.CharField()
    feature = s.CharField()
    environment = s.CharField()
    state = s.ChoiceField(Analysis.State.choices)
    to = s.DateTimeField()
    unit = s.CharField(allow_null=True)
    measures = AnalysisMeasure(many=True)
    control = s.CharField(allow_null=True)
    covariate = s.CharField(allow_null=True)
    exposure = s.CharField(allow_null=True)
    segments = s.ListField(child=s.CharField())
    crossovers = s.ChoiceField((KEEP, LEAVE_OUT))
    method = s.ChoiceField(METHODS)
    fileName = s.CharField(allow_null=True)
    rows = s.IntegerField()
    rowsDone = s.IntegerField()
    createdBy = s.CharField()
    createdAt = s.DateTimeField()
    finishedAt = s.DateTimeField(allow_null=True)
    problem = s.CharField(allow_null=True, help_text="Why the analysis failed.")

    def get_fields(self) -> dict[str, Any]:
        return super().get_fields() | {"from": s.DateTimeField()}


class ListedAnalysis(AnalysisRecord):
    sentence = s.CharField(allow_null=True, help_text="What came out; null until the analysis is done.")


class AnalysisList(s.Serializer[Any]):
    analyses = ListedAnalysis(many=True)


class AnalysisResult(s.Serializer[Any]):
    sentence = s.CharField(help_text="The first measure, for a manager.")
    unit = s.CharField()
    rows = s.IntegerField(help_text="In the period.")
    control = s.CharField()
    sides = s.ListField(child=s.CharField(), help_text="The control first.")
    counts = s.DictField(child=s.IntegerField(), help_text="Units, crossovers and rows.")
    leftOut = s.DictField(
        child=s.IntegerField(),
        help_text="Rows without a unit (`noUnit`), `outside` of the period, whose side is `unknown` or `random`, of "
        "users whom the flag did not divide (`notDivided`), or divided with `otherShares` than most.",
    )
    lacks = s.DictField(
        child=s.IntegerField(), help_text="Unknown rows by the fields on which they may depend."
    )
    changes = s.ListField(child=s.DictField(), help_text="Changes of the flag in the period.")
    checks = s.ListField(
        child=s.DictField(),
        help_text="`name`, `state` (`passed`, `warning`, `failed`, `note`, `skipped`), `sentence`, `p`, `measure` and "
        "`side`.",
    )
    shares = s.ListField(
        child=s.DictField(), help_text="By part of the period: shares that were set, and seen."
    )
    comparisons = s.ListField(
        child=s.DictField(),
        help_text="By measure and side: values of both sides, `difference`, `lift`, their intervals, `p`, `pAdjusted`, "
        "`isSignificant`, `detectable` (the smallest lift that would have been found), `sentence`, `overTime`.",
    )
    breakdowns = s.ListField(child=s.DictField(), help_text="The same by `segment` and `value`.")


class AnalysisDocument(AnalysisRecord):
    result = AnalysisResult(allow_null=True, help_text="Null until the analysis is done.")


class AnalysisViewSet(OnFlagViewSet):
    """Whoever may read the flag may read its analyses and make one."""

    tags = ("Playground",)
    lookup_url_kwarg = "analysis_id"
    permissions = {"create": None, "destroy": None}
    body_limit = settings.IMPORT_BODY_LIMIT
    parser_classes = TABLE_PARSERS
    analysis: Analysis

    def authorize(
        self,
        project_id: str,
        name: str | None = None,
        environment: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().authorize(project_id, name)
        if "analysis_id" in kwargs:
            self.analysis = access_analysis(self.flag, kwargs["analysis_id"])

    def find_flag(self, project_id: str, name: str) -> Flag:
        return access_flag(self.caller, project_id, name)

    @extend_schema(operation_id="getAnalyses", responses={200: AnalysisList})
    def list(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """List the analyses of a flag, the latest first."""
        found = list_analyses(self.flag)
        listed = [make_analysis_document(each) | {"sentence": sentence} for each, sentence in found]
        return Response({"analyses": listed})

    @extend_schema(
        operation_id="createAnalysis",
        summary="Analyze what came of a flag",
        description=DESCRIPTION,
        parameters=[AnalysisQuery],
        request={parser.media_type: FILE for parser in TABLE_PARSERS},
        responses={202: AnalysisRecord},
        examples=[
            OpenApiExample("Two users", value=FILE_EXAMPLE, request_only=True, media_type="text/csv"),
            OpenApiExample(
                "Waiting",
                value=RECORD_EXAMPLE | {"state": "waiting", "rows": 0, "rowsDone": 0, "finishedAt": None},
                response_only=True,
                status_codes=["202"],
            ),
        ],
    )
    def create(self, request: ApiRequest, project_id: str, name: str) -> Response:
        query = AnalysisQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        values: dict[str, Any] = query.validated_data
        try:
            body = request.data if isinstance(request.data, bytes) else b""
        except UnsupportedMediaType as error:
            raise ContentTypeNotAccepted(f"Send {TABLE_TYPES}. {error.detail}") from error
        design = Design(
            since=values["from"],
            until=values["to"],
            measures=read_measures({kind: values[kind] for kind in KINDS}),
            segments=values["segment"],
            **{
                each: values[each]
                for each in ("unit", "control", "covariate", "exposure", "crossovers", "method")
            },
        )
        analysis = create_analysis(
            body,
            design,
            project=project_id,
            flag=name,
            environment=values["environment"],
            name=values["name"],
            caller=self.caller,
            query=values["query"],
        )
        headers = {"Location": f"analyses/{analysis.pk}"}
        return Response(make_analysis_document(analysis), status=202, headers=headers)

    @extend_schema(
        operation_id="getAnalysis",
        responses={200: AnalysisDocument},
        examples=[OpenApiExample("Done", value=RESULT_EXAMPLE, response_only=True)],
    )
    def retrieve(self, request: ApiRequest, project_id: str, name: str, analysis_id: str) -> Response:
        """Get an analysis: its state and, once it is done, its result."""
        return Response(make_analysis_document(self.analysis) | {"result": self.analysis.result})

    @extend_schema(
        operation_id="getAnalysisResult",
        parameters=RESULT_PARAMETERS,
        responses={(200, "text/csv"): OpenApiTypes.STR},
    )
    @action(detail=True, methods=["get"])
    def result(
        self, request: ApiRequest, project_id: str, name: str, analysis_id: str
    ) -> StreamingHttpResponse:
        """Get the result of an analysis as CSV, a line for each comparison. Answers 409 until it is done."""
        rows = list_csv_rows(read_result(self.analysis))
        return make_csv_response(request, f"analysis-{self.analysis.pk}", CSV_COLUMNS, rows)

    @extend_schema(operation_id="removeAnalysis", responses={204: None})
    def destroy(self, request: ApiRequest, project_id: str, name: str, analysis_id: str) -> Response:
        """Delete an analysis; one that is being made stops. Its maker may, and whoever may update the flag."""
        delete_analysis(self.flag, analysis_id, caller=self.caller)
        return Response(status=204)
