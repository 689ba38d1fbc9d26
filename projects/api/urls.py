"""Everything below /api/admin/ that is about projects. Each module brings its own addresses."""

from importlib import import_module

from django.urls import URLPattern

MODULES: tuple[str, ...] = (
    "context_fields",
    "environments",
    "projects",
    "segments",
    "strategy_types",
    "tag_types",
    "tokens",
)

urlpatterns: list[URLPattern] = [
    pattern for module in MODULES for pattern in import_module(f"projects.api.{module}").urlpatterns
]
