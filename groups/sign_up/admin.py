"""The admin site's read-only page for invite links."""

from django.contrib import admin

from groups.admin_site.base import ReadOnlyModelAdmin
from groups.models import InviteLink

admin.site.register(
    InviteLink,
    ReadOnlyModelAdmin,
    list_display=("name", "role", "is_enabled", "expires_at", "created_at", "created_by"),
    list_select_related=("role",),
    search_fields=("name", "created_by"),
    exclude=("token_hash",),
)
