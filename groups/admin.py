"""The admin site's pages of users, groups, roles, logins and invite links."""

from functools import partial
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group as DjangoGroup
from django.http import HttpRequest

from flagadmin.core.audit.events import EventType
from flagadmin.core.errors import ValidationError
from groups.access import Caller
from groups.admin_site.base import (
    ActionInline,
    ActionModelAdmin,
    ReadOnlyModelAdmin,
    Subject,
    SubjectAdmin,
    is_admin,
)
from groups.admin_site.forms import ActionModelForm
from groups.authentication import get_caller
from groups.groups import actions as groups
from groups.groups.actions import NewGroup, check_approvers_without_group
from groups.models import (
    Group,
    GroupMembership,
    InviteLink,
    LoginFailure,
    LoginLink,
    Role,
    RolePermission,
    User,
)
from groups.people import actions as accounts
from groups.people.actions import (
    NewAccount,
    check_admins_without_account,
    check_admins_without_group,
    lock_admins,
)
from groups.roles import actions as roles
from groups.roles.actions import check_role_is_unused


class OnlyRootRoles:
    """A base for pages of accounts and groups, whose field `root_role` offers only root roles."""

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "root_role":
            kwargs["queryset"] = Role.objects.root()
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]

    def values(self, obj: Any, names: Any) -> dict[str, Any]:
        values = super().values(obj, names)  # type: ignore[misc]
        return {"root_role" if name == "root_role_id" else name: value for name, value in values.items()}


class RolePermissionInline(ActionInline):
    """The permissions of a role, which its page replaces as a whole."""

    model = RolePermission
    fields = ("permission", "environment")
    verbose_name_plural = "permissions"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_admin(request) and not is_built_in(obj)

    has_change_permission = has_delete_permission = has_add_permission


def is_built_in(obj: Any) -> bool:
    return isinstance(obj, Role) and obj.is_built_in


@admin.register(Role)
class RoleAdmin(SubjectAdmin):
    list_display = ("name", "id", "type", "description")
    list_filter = ("type",)
    search_fields = ("name", "description")
    readonly_on_change = ("type",)
    readonly_always = ("created_at",)
    fields = ("name", "type", "description", "created_at")
    inlines = (RolePermissionInline,)
    event_types = (EventType.ROLE_UPDATED,)
    subject = Subject(
        update=roles.update_role,
        delete=roles.delete_role,
        lock=roles.access_role_for_update,
        deletion_checks=(check_role_is_unused,),
    )

    def may_change(self, obj: Any) -> bool:
        return not is_built_in(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and not is_built_in(obj)

    def create(self, obj: Role, form: Any, caller: Caller) -> Role:
        return roles.create_role(**self.values(obj, form.cleaned_data), permissions=[], caller=caller)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Replaces all permissions of the role through one action."""
        if not formset.has_changed():
            return
        rows = [row for row in formset.forms if row.cleaned_data and not row.cleaned_data.get("DELETE")]
        permissions = list(dict.fromkeys(row.instance.held for row in rows))
        roles.update_role(form.instance.pk, {"permissions": permissions}, caller=get_caller(request))


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
        return accounts.access_account_for_update(obj.pk, obj.is_service)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (
            self.fields
            if obj is not None
            else ("username", "is_service", "name", "email", "root_role", "new_password")
        )

    def create(self, obj: User, form: Any, caller: Caller) -> User:
        values, password = self.values(obj, form.cleaned_data), form.cleaned_data["new_password"] or None
        return accounts.create_account(NewAccount(**values, password=password), caller=caller)

    def change(self, obj: User, form: Any, caller: Caller) -> None:
        changes: Any = self.values(obj, form.changed_data)
        accounts.update_account(obj.pk, changes, is_service=obj.is_service, caller=caller)

    def remove(self, obj: User, form: Any, caller: Caller) -> None:
        accounts.delete_account(obj.pk, is_service=obj.is_service, caller=caller)

    def deletion_label(self, obj: User) -> str:
        return f"{'Service account' if obj.is_service else 'Person'} {obj}, with its tokens, grants and memberships"

    def deletion_checks(self, obj: User, caller: Caller) -> Any:
        yield partial(check_admins_without_account, obj, caller)


class MembershipInline(ActionInline):
    model = GroupMembership
    fields = ("user",)
    raw_id_fields = ("user",)
    verbose_name_plural = "members"

    def create(self, obj: GroupMembership, form: Any, caller: Caller) -> None:
        self._set(obj, caller, read_member_ids(obj) | {obj.user_id})

    def remove(self, obj: GroupMembership, form: Any, caller: Caller) -> None:
        self._set(obj, caller, read_member_ids(obj) - {obj.user_id})

    def _set(self, obj: GroupMembership, caller: Caller, users: set[int]) -> None:
        groups.update_group(obj.group_id, {"users": sorted(users)}, caller=caller)


def read_member_ids(membership: GroupMembership) -> set[int]:
    rows = GroupMembership.objects.filter(group_id=membership.group_id)
    return set(rows.values_list("user_id", flat=True))


@admin.register(Group)
class GroupAdmin(OnlyRootRoles, SubjectAdmin):
    list_display = ("name", "description", "root_role", "scim_id", "created_at", "created_by")
    list_filter = ("root_role",)
    list_select_related = ("root_role",)
    search_fields = ("name", "description")
    readonly_always = ("scim_id", "created_at", "created_by")
    fields = ("name", "description", "root_role", "mappings_sso", "scim_id", "created_at", "created_by")
    inlines = (MembershipInline,)
    event_types = (EventType.GROUP_UPDATED,)
    subject = Subject(
        update=groups.update_group, delete=groups.delete_group, lock=groups.access_group_for_update
    )

    def lock(self, obj: Group, caller: Caller) -> object:
        lock_admins()
        return super().lock(obj, caller)

    def check_values(self, obj: Group, form: forms.ModelForm) -> None:
        names = obj.mappings_sso
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValidationError.at("mappings_sso", "must be a list of names")

    def create(self, obj: Group, form: Any, caller: Caller) -> Group:
        return groups.create_group(NewGroup(**self.values(obj, form.cleaned_data)), caller=caller)

    def deletion_label(self, obj: Group) -> str:
        plan = groups.plan_group_deletion(obj, caller=Caller.system())
        return (
            f"Group {obj}, its {len(plan.members)} memberships and the {len(plan.grants)} roles it gives in projects; "
            f"{len(plan.losing_all)} people lose all access"
        )

    def deletion_checks(self, obj: Group, caller: Caller) -> Any:
        yield partial(check_admins_without_group, obj, caller)
        yield partial(check_approvers_without_group, obj)


admin.site.register(
    InviteLink,
    ReadOnlyModelAdmin,
    list_display=("name", "role", "is_enabled", "expires_at", "created_at", "created_by"),
    list_select_related=("role",),
    search_fields=("name", "created_by"),
    exclude=("token_hash",),
)


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


# Unused, or not to be changed without their audit events.
UNUSED = (DjangoGroup, EmailAddress, SocialApp, SocialToken)
admin.site.unregister([*UNUSED, Authenticator, SocialAccount, UserSession])
