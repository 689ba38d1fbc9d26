"""The admin site's read-only pages for one-time links and failed logins."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from groups.admin_site.base import ReadOnlyModelAdmin
from groups.models import (
    LoginFailure,
    LoginLink,
)


@admin.register(LoginLink)
class LoginLinkAdmin(ReadOnlyModelAdmin):
    list_display = ("user", "created_at", "expires_at", "used_at")
    search_fields = ("user__username",)
    exclude = ("token_hash",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return tuple(name for name in super().get_readonly_fields(request, obj) if name != "token_hash")


@admin.register(LoginFailure)
class LoginFailureAdmin(ReadOnlyModelAdmin):
    list_display = ("account", "address", "failed_at")
    search_fields = ("account", "address")
