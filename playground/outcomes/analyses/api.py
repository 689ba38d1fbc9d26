"""/api/admin/projects/ID/features/NAME/analyses: did it work?"""

from typing import Any

from django.conf import settings
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.response import Response

from flagadmin.core.errors import ContentTypeNotAccepted
from flagadmin.core.lists.pages import make_csv_response
from groups.viewsets import ApiRequest
from playground.models import Analysis
from playground.outcomes.analyses import serializers as schema
from playground.outcomes.analyses.actions import create_analysis, delete_analysis
from playground.outcomes.analyses.design import KINDS, Design, read_measures
from playground.outcomes.analyses.queries import (
    CSV_COLUMNS,
    access_analysis,
    list_analyses,
    list_csv_rows,
    make_analysis_document,
    read_result,
)
from playground.outcomes.api import TABLE_PARSERS, TABLE_TYPES
from playground.user_runs.serializers import RESULT_PARAMETERS
from projects.access import access_flag
from projects.models import Flag
from projects.viewsets import OnFlagViewSet


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

    @extend_schema(operation_id="getAnalyses", responses={200: schema.AnalysisList})
    def list(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """List the analyses of a flag, the latest first."""
        found = list_analyses(self.flag)
        listed = [make_analysis_document(each) | {"sentence": sentence} for each, sentence in found]
        return Response({"analyses": listed})

    @extend_schema(
        operation_id="createAnalysis",
        summary="Analyze what came of a flag",
        description=schema.DESCRIPTION,
        parameters=[schema.AnalysisQuery],
        request={parser.media_type: schema.FILE for parser in TABLE_PARSERS},
        responses={202: schema.AnalysisRecord},
        examples=[
            OpenApiExample("Two users", value=schema.FILE_EXAMPLE, request_only=True, media_type="text/csv"),
            OpenApiExample(
                "Waiting",
                value=schema.RECORD_EXAMPLE
                | {"state": "waiting", "rows": 0, "rowsDone": 0, "finishedAt": None},
                response_only=True,
                status_codes=["202"],
            ),
        ],
    )
    def create(self, request: ApiRequest, project_id: str, name: str) -> Response:
        query = schema.AnalysisQuery(data=request.query_params)
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
        responses={200: schema.AnalysisDocument},
        examples=[OpenApiExample("Done", value=schema.RESULT_EXAMPLE, response_only=True)],
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
