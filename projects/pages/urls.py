"""The console's pages about projects and what is in them. Each module brings its own addresses."""

from importlib import import_module

from django.urls import URLPattern

MODULES: tuple[str, ...] = (
    "access",
    "role",
    "tokens",
    "projects",
    "archive",
    "switches",
    "project",
    "applications",
    "application",
    "deletion",
    "flag_forms",
    "flag_actions",
    "flag",
    "strategy",
    "variants",
    "settings",
    "default_strategy",
    "segments",
    "context_fields",
    "strategy_types",
    "tag_types",
)

urlpatterns: list[URLPattern] = [
    pattern for module in MODULES for pattern in import_module(f"projects.pages.{module}").urlpatterns
]
