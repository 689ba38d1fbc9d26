"""URL patterns of everything that applications, SDKs and edge proxies call."""

from django.urls import include, path

from flagadmin.core.http import routers  # noqa: F401 - <text:key>
from sdk.delta.api import DeltaView
from sdk.edge import RelaysView, ValidateTokensView
from sdk.features.api import FeaturesView, FeatureView
from sdk.frontend import (
    FrontendMetricsView,
    FrontendRegisterView,
    FrontendTogglesView,
    ProxyMetricsView,
    ProxyRegisterView,
    ProxyTogglesView,
)
from sdk.ofrep.api import EventsView, FlagsView, FlagView
from sdk.reports.api import BulkMetricsView, ImpactMetricsView, MetricsView, RegisterView
from sdk.streaming.api import StreamingView

client = [
    path("features", FeaturesView.as_view()),
    path("features/<str:name>", FeatureView.as_view()),
    path("delta", DeltaView.as_view()),
    path("streaming", StreamingView.as_view()),
    path("register", RegisterView.as_view()),
    path("metrics", MetricsView.as_view()),
    path("metrics/bulk", BulkMetricsView.as_view()),
    path("relays", RelaysView.as_view()),
]
frontend = [
    path("frontend", FrontendTogglesView.as_view()),
    path("frontend/client/register", FrontendRegisterView.as_view()),
    path("frontend/client/metrics", FrontendMetricsView.as_view()),
    path("proxy", ProxyTogglesView.as_view()),
    path("proxy/client/register", ProxyRegisterView.as_view()),
    path("proxy/client/metrics", ProxyMetricsView.as_view()),
]
ofrep = [
    path("v1/events", EventsView.as_view()),
    path("v1/evaluate/flags", FlagsView.as_view()),
    path("v1/evaluate/flags/<text:key>", FlagView.as_view()),
]

urlpatterns = [
    path("api/client/", include(client)),
    path("api/", include(frontend)),
    path("ofrep/", include(ofrep)),
    path("internal-backstage/impact/metrics", ImpactMetricsView.as_view()),
    path("edge/validate", ValidateTokensView.as_view()),
]
