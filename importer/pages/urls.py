"""The console's pages about imports. Each module brings its own addresses."""

from importlib import import_module

from django.urls import URLPattern

MODULES: tuple[str, ...] = ("upload", "run", "evaluate", "history")

urlpatterns: list[URLPattern] = [
    pattern for module in MODULES for pattern in import_module(f"importer.pages.{module}").urlpatterns
]
