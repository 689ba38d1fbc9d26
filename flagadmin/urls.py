"""The root URLconf. Each app has its own, included here."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path

from flagadmin.console.api_docs import operations as api
from flagadmin.console.api_docs.pages import OperationPage, OperationsPage
from flagadmin.core.http import health, middleware
from integrations.mcp.api import McpView, describe_resource
from integrations.signals.api import SignalView

admin.autodiscover()

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("health", health.healthz),  # the reference's URLs of the two probes
    path("ready", health.readyz),
    path("metrics", middleware.metrics),
    path("api/openapi.json", api.OpenApiView.as_view(), name="openapi"),
    path("api/docs/", OperationsPage.as_view(), name="docs"),
    path("api/docs/<str:operation_id>/", OperationPage.as_view(), name="api-operation"),
    # The admin API first, with its most frequent paths first: each request is compared with the routes in order.
    path("api/admin/", include("playground.api_urls")),
    path("api/admin/", include("importer.api_urls")),
    path("api/admin/", include("projects.api_urls")),
    path("api/admin/", include("groups.api_urls")),
    path("api/admin/", include("integrations.api_urls")),
    path("api/admin/", include("releases.api_urls")),
    path("", include("sdk.urls")),
    path("api/signals/<str:source>", SignalView.as_view(), name="signal"),
    path("scim/v2/", include("groups.scim.api")),
    path("mcp", McpView.as_view(), name="mcp"),
    path(".well-known/oauth-protected-resource/mcp", describe_resource, name="mcp-metadata"),
    path("auth/", include("groups.login.api")),
    path("invite/", include("groups.sign_up.api")),
    re_path("^api(/.*)?$", api.UnknownRoute.as_view()),
    path("", include("groups.console_urls")),
    path("", include("projects.console_urls")),
    path("", include("releases.console_urls")),
    path("", include("playground.console_urls")),
    path("", include("importer.console_urls")),
    path("", include("integrations.console_urls")),
    path("", include("flagadmin.console.urls")),
    path("admin/", admin.site.urls),
]

handler400 = "flagadmin.core.http.error_responses.handler400"
handler403 = "flagadmin.core.http.error_responses.handler403"
handler404 = "flagadmin.core.http.error_responses.handler404"
handler500 = "flagadmin.core.http.error_responses.handler500"
