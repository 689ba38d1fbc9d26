"""The console's pages about people, groups, roles and keys. Each module brings its own addresses."""

from importlib import import_module

from django.urls import URLPattern

MODULES: tuple[str, ...] = (
    "account",
    "accounts",
    "account_changes",
    "groups",
    "login",
    "roles",
    "service_tokens",
)

urlpatterns: list[URLPattern] = [
    pattern for module in MODULES for pattern in import_module(f"groups.pages.{module}").urlpatterns
]
