"""/impact-metrics/config of the installation, and of a flag: charts of impact metrics."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from groups.authentication import ApiRequest
from groups.permissions import Permission
from groups.viewsets import ViewSet
from projects.viewsets import OnFlagViewSet
from releases.models import MetricChart
from releases.safeguards.chart_actions import UPDATE, Owner, remove_chart, set_chart
from releases.safeguards.documents import chart_document
from releases.safeguards.queries import kinds_of_metrics, read_charts
from releases.safeguards.serializers import ChartBody, ChartRecord, ChartsRecord

ADMIN = Permission.ADMIN


class _Charts(ViewSet):
    tags = ("Impact Metrics",)
    lookup_url_kwarg = "chart_id"

    @property
    def owner(self) -> Owner | None:
        """The owner of the charts; None: the installation."""
        return None

    def may_write(self) -> bool:
        return self.caller.can(ADMIN)

    def documents(self, *charts: MetricChart) -> list[dict[str, Any]]:
        kinds, mode = kinds_of_metrics(), "write" if self.may_write() else "read"
        return [
            {**chart_document(chart), "type": kinds.get(chart.metric, "unknown"), "mode": mode}
            for chart in charts
        ]

    def save(self) -> Response:
        chart = set_chart(self.owner, self.validated(ChartBody), caller=self.caller)
        return Response(self.documents(chart)[0])


class MetricChartViewSet(_Charts):
    permissions = {"create": ADMIN, "destroy": ADMIN}

    @extend_schema(operation_id="getImpactMetricsConfig", responses={200: ChartsRecord})
    def list(self, request: ApiRequest) -> Response:
        """List the charts of impact metrics that are of no flag."""
        return Response({"configs": self.documents(*read_charts(None))})

    @extend_schema(operation_id="storeImpactMetricsConfig", request=ChartBody, responses={200: ChartRecord})
    def create(self, request: ApiRequest) -> Response:
        """Add a chart of an impact metric, or change the one with the id."""
        return self.save()

    @extend_schema(operation_id="deleteImpactMetricsConfig", responses={204: None})
    def destroy(self, request: ApiRequest, chart_id: str) -> Response:
        """Remove a chart of an impact metric."""
        remove_chart(None, chart_id, caller=self.caller)
        return Response(status=204)


class FlagMetricChartViewSet(_Charts, OnFlagViewSet):
    permissions = {"create": UPDATE, "destroy": UPDATE}

    @property
    def owner(self) -> Owner:
        return self.kwargs["project_id"], self.kwargs["name"]

    def may_write(self) -> bool:
        return self.caller.can(UPDATE, project=self.kwargs["project_id"])

    @extend_schema(operation_id="getFlagImpactMetricsConfig", responses={200: ChartsRecord})
    def list(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """List the charts of impact metrics of a flag."""
        return Response({"configs": self.documents(*read_charts(self.flag))})

    @extend_schema(
        operation_id="storeFlagImpactMetricsConfig", request=ChartBody, responses={200: ChartRecord}
    )
    def create(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Add a chart of an impact metric to a flag, or change the one with the id."""
        return self.save()

    @extend_schema(operation_id="deleteFlagImpactMetricsConfig", responses={204: None})
    def destroy(self, request: ApiRequest, project_id: str, name: str, chart_id: str) -> Response:
        """Remove a chart of an impact metric from a flag."""
        remove_chart(self.owner, chart_id, caller=self.caller)
        return Response(status=204)
