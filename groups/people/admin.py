"""Accounts in the admin site."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from flagadmin.core.audit.events import EventType
from groups.access import Caller
from groups.admin_site.base import ActionModelAdmin
from groups.admin_site.forms import ActionModelForm
from groups.models import User
from groups.people import actions
from groups.people.actions import NewAccount, check_admins_without_account, lock_admins
from groups.roles.admin import OnlyRootRoles


class UserForm(ActionModelForm):
    new_password = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Only for a new user. Without a password, they first log in with a one-time link.",
    )


@admin.register(User)
class UserAdmin(OnlyRootRoles, ActionModelAdmin):
    form = UserForm
    list_display = ("username", "name", "email", "is_service", "is_active", "root_role", "seen_at")
    list_filter = ("is_service", "is_active", "root_role")
    list_select_related = ("root_role",)
    search_fields = ("username", "name", "email")
    readonly_on_change = ("username", "is_service")
    readonly_always = ("created_at", "seen_at")
    fields = (
        "username", "is_service", "name", "email", "is_active", "root_role", "created_at", "seen_at",
    )  # fmt: skip

    event_types = (EventType.USER_UPDATED, EventType.SERVICE_ACCOUNT_UPDATED)

    def lock(self, obj: User, caller: Caller) -> object:
        lock_admins()
        return actions.access_account_for_update(obj.pk, obj.is_service)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (
            self.fields
            if obj is not None
            else ("username", "is_service", "name", "email", "root_role", "new_password")
        )

    def create(self, obj: User, form: Any, caller: Caller) -> User:
        values, password = self.values(obj, form.cleaned_data), form.cleaned_data["new_password"] or None
        return actions.create_account(NewAccount(**values, password=password), caller=caller)

    def change(self, obj: User, form: Any, caller: Caller) -> None:
        changes: Any = self.values(obj, form.changed_data)
        actions.update_account(obj.pk, changes, is_service=obj.is_service, caller=caller)

    def remove(self, obj: User, form: Any, caller: Caller) -> None:
        actions.delete_account(obj.pk, is_service=obj.is_service, caller=caller)

    def deletion_label(self, obj: User) -> str:
        return f"{'Service account' if obj.is_service else 'Person'} {obj}, with its tokens, grants and memberships"

    def deletion_checks(self, obj: User, caller: Caller) -> Any:
        yield partial(check_admins_without_account, obj, caller)
