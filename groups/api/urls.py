"""Everything below /api/admin/ that is about people, groups, roles and keys. Each module brings its own addresses."""

from importlib import import_module

from django.urls import URLPattern

MODULES: tuple[str, ...] = (
    "access_candidates",
    "groups",
    "me",
    "personal_tokens",
    "roles",
    "service_accounts",
    "users",
)

urlpatterns: list[URLPattern] = [
    pattern for module in MODULES for pattern in import_module(f"groups.api.{module}").urlpatterns
]
