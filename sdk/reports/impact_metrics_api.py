"""GET /internal-backstage/impact/metrics: impact metrics in the Prometheus text format."""

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.views import APIView

from flagadmin.core.errors import NoAccess
from groups.authentication import ApiRequest
from projects.applications.impact_metrics_text import CONTENT_TYPE, format_impact_metrics


class ImpactMetricsView(APIView):
    tags = ("Metrics",)

    @extend_schema(
        operation_id="getImpactMetrics",
        responses={(200, "text/plain"): OpenApiResponse(str, description="Prometheus text format.")},
    )
    def get(self, request: ApiRequest) -> HttpResponse:
        """Get the counters, gauges and histograms that applications recorded.

        For callers who can read all projects.
        """
        if request.user.readable_projects is not None:
            raise NoAccess("Impact metrics are of all projects; you need a root role to read them.")
        return HttpResponse(format_impact_metrics(), content_type=CONTENT_TYPE)
