"""/safeguards of a release plan and of a flag in an environment, and charts of impact metrics."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.project_scope import OnFlagViewSet
from releases.models import MetricChart
from releases.plans.queries import OfFlagPath, find_plan
from releases.safeguards import actions
from releases.safeguards.actions import (
    UPDATE_CHARTS,
    Owner,
    remove_chart,
    remove_flag_safeguard,
    set_chart,
    set_flag_safeguard,
)
from releases.safeguards.actions import UPDATE_FLAG as SWITCH
from releases.safeguards.queries import (
    chart_document,
    kinds_of_metrics,
    read_charts,
    read_safeguards,
    safeguard_document,
)
from releases.safeguards.serializers import (
    ChartBody,
    ChartRecord,
    ChartsRecord,
    FlagSafeguardBody,
    SafeguardBody,
    SafeguardRecord,
)

UPDATE = Permission.UPDATE_FEATURE_STRATEGY
EXAMPLE = OpenApiExample(
    "More than 5 failed payments a minute",
    {
        "title": "Failed payments",
        "impactMetric": {
            "metricName": "failed_payments",
            "aggregationMode": "rps",
            "timeRange": "hour",
            "labelSelectors": {"environment": ["production"]},
        },
        "triggerCondition": {"operator": ">", "threshold": 0.083},
    },
    request_only=True,
)


class _Safeguards(OfFlagPath, OnFlagViewSet):
    tags = ("Release Plans",)
    lookup_url_kwarg = "safeguard_id"


class SafeguardViewSet(_Safeguards):
    permissions = {"replace": UPDATE, "destroy": UPDATE}

    def authorize(self, *args: Any, plan_id: str = "", **kwargs: Any) -> None:
        super().authorize(*args, **kwargs)
        self.plan = find_plan(self.flag, kwargs["environment"], plan_id)

    @extend_schema(operation_id="getSafeguards", responses={200: SafeguardRecord(many=True)})
    def list(self, request: ApiRequest, **where: Any) -> Response:
        """List the safeguards of a release plan."""
        return Response([safeguard_document(safeguard) for safeguard in self.plan.safeguards.all()])

    @extend_schema(
        operation_id="changeSafeguard", request=SafeguardBody, responses={204: None}, examples=[EXAMPLE]
    )
    def replace(self, request: ApiRequest, plan_id: str, **where: Any) -> Response:
        """Add a safeguard to a release plan, or change the one with the id."""
        actions.set_safeguard(self.flag_path, plan_id, self.validated(SafeguardBody), caller=self.caller)
        return Response(status=204)

    @extend_schema(operation_id="deleteSafeguard", responses={204: None})
    def destroy(self, request: ApiRequest, plan_id: str, safeguard_id: str, **where: Any) -> Response:
        """Remove a safeguard from a release plan."""
        actions.remove_safeguard(self.flag_path, plan_id, safeguard_id, caller=self.caller)
        return Response(status=204)


class FlagSafeguardViewSet(_Safeguards):
    permissions = {"replace": SWITCH, "destroy": SWITCH}

    @extend_schema(operation_id="getFeatureEnvSafeguards", responses={200: SafeguardRecord(many=True)})
    def list(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """List the safeguards of a flag in an environment. Those of its release plan are not among them."""
        return Response([safeguard_document(row) for row in read_safeguards(self.flag, environment)])

    @extend_schema(
        operation_id="changeFeatureEnvSafeguard",
        request=FlagSafeguardBody,
        responses={204: None},
        examples=[EXAMPLE],
    )
    def replace(self, request: ApiRequest, project_id: str, name: str, environment: str) -> Response:
        """Add a safeguard to a flag in an environment, or change the one with the id.

        While it is breached, the flag is turned off there.
        """
        set_flag_safeguard(self.flag_path, self.validated(FlagSafeguardBody), caller=self.caller)
        return Response(status=204)

    @extend_schema(operation_id="deleteFeatureEnvSafeguard", responses={204: None})
    def destroy(self, request: ApiRequest, safeguard_id: str, **where: Any) -> Response:
        """Remove a safeguard of a flag in an environment."""
        remove_flag_safeguard(self.flag_path, safeguard_id, caller=self.caller)
        return Response(status=204)


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
    permissions = {"create": UPDATE_CHARTS, "destroy": UPDATE_CHARTS}

    @property
    def owner(self) -> Owner:
        return self.kwargs["project_id"], self.kwargs["name"]

    def may_write(self) -> bool:
        return self.caller.can(UPDATE_CHARTS, project=self.kwargs["project_id"])

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
