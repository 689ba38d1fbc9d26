"""URL patterns below /api/client/, for backend SDKs and edge proxies."""

from django.urls import path

from projects.client_api.delta.api import DeltaView
from projects.client_api.features import FeaturesView, FeatureView
from projects.client_api.metrics import BulkMetricsView, MetricsView
from projects.client_api.register import RegisterView
from projects.client_api.streaming.api import StreamingView

urlpatterns = [
    path("features", FeaturesView.as_view()),
    path("features/<str:name>", FeatureView.as_view()),
    path("delta", DeltaView.as_view()),
    path("streaming", StreamingView.as_view()),
    path("register", RegisterView.as_view()),
    path("metrics", MetricsView.as_view()),
    path("metrics/bulk", BulkMetricsView.as_view()),
]
