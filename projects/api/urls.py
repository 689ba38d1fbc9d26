"""Everything below /api/admin/ that is about projects. Each module brings its own addresses."""

from importlib import import_module

from django.urls import URLPattern

MODULES: tuple[str, ...] = (
    "application_metrics",
    "application_overview",
    "applications",
    "context_fields",
    "constraints",
    "dependencies",
    "environments",
    "events",
    "favourites",
    "flag_environments",
    "flag_types",
    "flags",
    "lifecycle",
    "links",
    "project_access",
    "projects",
    "search",
    "flag_batches",  # after "search": archive/features is an address of its own
    "role_usage",
    "segments",
    "strategies",
    "strategy_types",
    "tag_types",
    "tags",
    "tokens",
)

urlpatterns: list[URLPattern] = [
    pattern for module in MODULES for pattern in import_module(f"projects.api.{module}").urlpatterns
]
