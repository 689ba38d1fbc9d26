"""API tokens in the admin site: change the expiry, or revoke."""

from typing import Any

from django.contrib import admin

from flagadmin.core.audit.events import EventType
from groups.access import Caller
from groups.admin_site.base import ActionInline, ActionModelAdmin
from groups.models import ApiToken, ApiTokenProject
from groups.people import personal_tokens
from projects.tokens import actions as tokens
from projects.tokens.access import access_token_for_update


class ScopeInline(ActionInline):
    model = ApiTokenProject
    fields = ("project",)
    readonly_always = ("project",)
    verbose_name_plural = "projects it can access"


@admin.register(ApiToken)
class ApiTokenAdmin(ActionModelAdmin):
    list_display = (
        "name", "kind", "prefix", "environment", "all_projects", "user", "expires_at", "seen_at",
    )  # fmt: skip
    list_filter = ("kind", "environment", "all_projects")
    list_select_related = ("environment", "user")
    search_fields = ("name", "prefix", "user__username")
    fields = (
        "name", "kind", "prefix", "environment", "all_projects", "pending_scope", "user", "alias", "expires_at",
        "created_at", "created_by", "seen_at",
    )  # fmt: skip
    readonly_always = tuple(name for name in fields if name != "expires_at")
    inlines = (ScopeInline,)
    event_types = (EventType.API_TOKEN_UPDATED,)

    def lock(self, obj: ApiToken, caller: Caller) -> object:
        return access_token_for_update(caller, str(obj.pk), "UPDATE")

    def may_change(self, obj: Any) -> bool:
        return obj is None or obj.kind != ApiToken.Kind.PERSONAL

    def change(self, obj: ApiToken, form: Any, caller: Caller) -> None:
        tokens.update_token(str(obj.pk), expires_at=obj.expires_at, caller=caller)

    def remove(self, obj: ApiToken, form: Any, caller: Caller) -> None:
        if obj.user is not None:
            personal_tokens.delete_personal_token(obj.user, obj.pk, caller=caller)
        else:
            tokens.delete_token(str(obj.pk), caller=caller)
