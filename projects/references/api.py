"""/api/admin/code-references: the places of flags in code, as reported by `flagadmin references`."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from flagadmin.core.http.fields import MAX_NAME_LENGTH, Body, ListOf, Texts
from flagadmin.core.http.responses import iso
from groups.viewsets import ApiRequest, ViewSet
from projects.access import access_flag
from projects.models import CodeReport, Flag
from projects.project_scope import OnFlagViewSet
from projects.references.actions import (
    MAX_PATH,
    check_may_report,
    find_reportable_flags,
    read_references,
    report_references,
)

MAX_FLAGS = 20_000
MAX_OF_FLAG = 1_000
BODY_LIMIT = 16_000_000


class PlaceBody(Body):
    path = serializers.CharField(max_length=MAX_PATH)
    line = serializers.IntegerField(min_value=1, max_value=10_000_000)


class FlagReferences(Body):
    flag = serializers.CharField(max_length=MAX_NAME_LENGTH)
    places = ListOf(child=PlaceBody(), max_length=MAX_OF_FLAG)


class ReportBody(Body):
    repository = serializers.CharField(max_length=200)
    revision = serializers.CharField(max_length=100, required=False, allow_blank=True)
    link = serializers.CharField(
        max_length=500,
        required=False,
        allow_blank=True,
        help_text="The address of a place, with `{path}`, `{line}` and `{revision}`.",
    )
    references = ListOf(child=FlagReferences(), max_length=MAX_FLAGS)


class ReportResult(serializers.Serializer[Any]):
    flags = serializers.IntegerField(help_text="Flags that were stored.")
    ignored = serializers.IntegerField(help_text="Flags that are unknown, or that the caller may not update.")


class RepositoryRecord(serializers.Serializer[Any]):
    repository = serializers.CharField()
    revision = serializers.CharField()
    reportedAt = serializers.DateTimeField()


class ReportsRecord(serializers.Serializer[Any]):
    flags = Texts(help_text="Flags that the caller may report on.")
    repositories = RepositoryRecord(many=True)


class PlaceRecord(serializers.Serializer[Any]):
    path = serializers.CharField()
    line = serializers.IntegerField()
    url = serializers.CharField(allow_null=True)


class ReferenceRecord(serializers.Serializer[Any]):
    repository = serializers.CharField(source="report.repository")
    revision = serializers.CharField(source="report.revision")
    count = serializers.IntegerField(help_text="Of all places.")
    places = PlaceRecord(many=True, help_text="The first ones.")


class CodeReferenceViewSet(ViewSet):
    """Permissions depend on the flags in the body."""

    tags = ("Features",)
    permissions = {"create": None}
    body_limit = BODY_LIMIT

    @extend_schema(operation_id="getCodeReports", responses={200: ReportsRecord})
    def list(self, request: ApiRequest) -> Response:
        """List the flags to look for in code, and the repositories that were reported."""
        names = find_reportable_flags(self.caller).order_by("name").values_list("name", flat=True)
        repositories = [
            {"repository": row.repository, "revision": row.revision, "reportedAt": iso(row.reported_at)}
            for row in CodeReport.objects.filter(
                references__flag__in=Flag.objects.readable_by(self.caller)
            ).distinct()
        ]
        return Response({"flags": list(names), "repositories": repositories})

    @extend_schema(
        operation_id="reportCodeReferences",
        request=ReportBody,
        responses={200: ReportResult},
        examples=[
            OpenApiExample(
                "A flag in a file",
                {
                    "repository": "shop/web",
                    "revision": "4f2a9c1",
                    "link": "https://git.example.com/shop/web/blob/{revision}/{path}#L{line}",
                    "references": [
                        {"flag": "small-cart-hint", "places": [{"path": "src/cart.ts", "line": 12}]}
                    ],
                },
                request_only=True,
            )
        ],
    )
    def create(self, request: ApiRequest) -> Response:
        """Report where flags are in a repository. It replaces the last report, for flags that the caller may update."""
        check_may_report(self.caller)
        body = self.validated(ReportBody)
        references = {entry["flag"]: entry["places"] for entry in body["references"]}
        return Response(report_references(body["repository"], body, references, caller=self.caller))


class FlagReferenceViewSet(OnFlagViewSet):
    tags = ("Features",)

    def find_flag(self, project_id: str, name: str) -> Flag:
        return access_flag(self.caller, project_id, name)

    @extend_schema(operation_id="getFeatureReferences", responses={200: ReferenceRecord(many=True)})
    def list(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """List where the flag is in code. The flag may be archived."""
        return Response(ReferenceRecord(read_references([self.flag.pk])[self.flag.pk], many=True).data)
