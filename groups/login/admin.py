"""The admin site's read-only pages for one-time links and failed logins."""

from django.contrib import admin

from groups.admin_site.base import ReadOnlyModelAdmin
from groups.models import LoginFailure, LoginLink

admin.site.register(
    LoginLink,
    ReadOnlyModelAdmin,
    list_display=("user", "created_at", "expires_at", "used_at"),
    search_fields=("user__username",),
    exclude=("token_hash",),
)
admin.site.register(
    LoginFailure,
    ReadOnlyModelAdmin,
    list_display=("account", "address", "failed_at"),
    search_fields=("account", "address"),
)
