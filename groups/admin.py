"""The admin site's pages about people, groups, roles and keys: fixed through the same functions as the API."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group as DjangoGroup
from django.http import HttpRequest

from flagadmin.admin_base import Fix, FixForm, FixInline, ReadOnly, is_admin
from flagadmin.errors import ValidationError
from groups.access import Caller
from groups.authentication import caller_of
from groups.groups import actions as groups
from groups.groups.actions import NewGroup
from groups.models import (
    Group,
    GroupMembership,
    LoginFailure,
    LoginLink,
    Role,
    RolePermission,
    User,
)
from groups.people import actions as accounts
from groups.people.actions import NewAccount
from groups.people.last_admin import check_admins_without_account, check_admins_without_group
from groups.roles import actions as roles
from groups.roles.actions import Held

ROOT_TYPES = (Role.Type.ROOT, Role.Type.ROOT_CUSTOM)

# Django's own groups hold nothing here.
admin.site.unregister(DjangoGroup)


class OnlyRootRoles:
    """Root roles alone are offered where everyone's rights come from."""

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "root_role":
            kwargs["queryset"] = Role.objects.filter(type__in=ROOT_TYPES)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]


class UserForm(FixForm):
    new_password = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Only for a new person. Without one they log in by a one-time link first.",
    )


@admin.register(User)
class UserFix(OnlyRootRoles, Fix):
    form = UserForm
    list_display = ("username", "name", "email", "is_service", "is_active", "root_role", "seen_at")
    list_filter = ("is_service", "is_active", "root_role")
    list_select_related = ("root_role",)
    search_fields = ("username", "name", "email")
    fixed = ("username", "is_service")
    readonly_always = ("created_at", "seen_at")
    fields = (
        "username", "is_service", "name", "email", "is_active", "root_role", "created_at", "seen_at",
    )  # fmt: skip

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (
            self.fields
            if obj is not None
            else ("username", "is_service", "name", "email", "root_role", "new_password")
        )

    def create(self, obj: User, form: Any, caller: Caller) -> User:
        new = NewAccount(
            username=obj.username,
            is_service=obj.is_service,
            name=obj.name,
            email=obj.email,
            root_role=obj.root_role_id,
            password=form.cleaned_data["new_password"] or None,
        )
        return accounts.create_account(new, caller=caller)

    def change(self, obj: User, form: Any, caller: Caller) -> None:
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        if "root_role" in changes:
            changes["root_role"] = obj.root_role_id
        accounts.update_account(obj.pk, changes, is_service=obj.is_service, caller=caller)

    def remove(self, obj: User, form: Any, caller: Caller) -> None:
        accounts.delete_account(obj.pk, is_service=obj.is_service, caller=caller)

    def told(self, obj: User) -> str:
        return f"{'Service account' if obj.is_service else 'Person'} {obj}, with its tokens, grants and memberships"

    def deletion_checks(self, obj: User, caller: Caller) -> Any:
        yield partial(check_admins_without_account, obj, caller)


class MembershipInline(FixInline):
    model = GroupMembership
    fields = ("user",)
    raw_id_fields = ("user",)
    verbose_name_plural = "members"

    def create(self, obj: GroupMembership, form: Any, caller: Caller) -> None:
        self._set(obj, caller, members(obj) | {obj.user_id})

    def remove(self, obj: GroupMembership, form: Any, caller: Caller) -> None:
        self._set(obj, caller, members(obj) - {obj.user_id})

    def _set(self, obj: GroupMembership, caller: Caller, users: set[int]) -> None:
        groups.update_group(obj.group_id, {"users": sorted(users)}, caller=caller)


def members(membership: GroupMembership) -> set[int]:
    rows = GroupMembership.objects.filter(group_id=membership.group_id)
    return set(rows.values_list("user_id", flat=True))


@admin.register(Group)
class GroupFix(OnlyRootRoles, Fix):
    list_display = ("name", "description", "root_role", "scim_id", "created_at", "created_by")
    list_filter = ("root_role",)
    list_select_related = ("root_role",)
    search_fields = ("name", "description")
    readonly_always = ("scim_id", "created_at", "created_by")
    fields = ("name", "description", "root_role", "mappings_sso", "scim_id", "created_at", "created_by")
    inlines = (MembershipInline,)

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj is not None else ()

    def check_values(self, obj: Group, form: forms.ModelForm) -> None:
        names = obj.mappings_sso
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValidationError.at("mappings_sso", "must be a list of names")

    def create(self, obj: Group, form: Any, caller: Caller) -> Group:
        new = NewGroup(
            name=obj.name,
            description=obj.description,
            mappings_sso=tuple(obj.mappings_sso),
            root_role=obj.root_role_id,
        )
        return groups.create_group(new, caller=caller)

    def change(self, obj: Group, form: Any, caller: Caller) -> None:
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        if "root_role" in changes:
            changes["root_role"] = obj.root_role_id
        if changes:
            groups.update_group(obj.pk, changes, caller=caller)

    def remove(self, obj: Group, form: Any, caller: Caller) -> None:
        groups.delete_group(obj.pk, caller=caller)

    def told(self, obj: Group) -> str:
        plan = groups.plan_group_deletion(obj, caller=Caller.system())
        return (
            f"Group {obj}, its {len(plan.members)} memberships and the {len(plan.grants)} roles it gives in projects; "
            f"{len(plan.losing_all)} people lose all access"
        )

    def deletion_checks(self, obj: Group, caller: Caller) -> Any:
        yield partial(check_admins_without_group, obj, caller)


class RolePermissionInline(FixInline):
    model = RolePermission
    fields = ("permission", "environment")
    verbose_name_plural = "permissions"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_admin(request) and not is_built_in(obj)

    has_change_permission = has_delete_permission = has_add_permission


def held(row: RolePermission) -> Held:
    return Held(row.permission, row.environment_id)


def is_built_in(obj: Any) -> bool:
    return isinstance(obj, Role) and obj.is_built_in


@admin.register(Role)
class RoleFix(Fix):
    list_display = ("name", "id", "type", "description")
    list_filter = ("type",)
    search_fields = ("name", "description")
    fixed = ("type",)
    readonly_always = ("created_at",)
    fields = ("name", "type", "description", "created_at")
    inlines = (RolePermissionInline,)

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj is not None else ()

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and not is_built_in(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and not is_built_in(obj)

    def create(self, obj: Role, form: Any, caller: Caller) -> Role:
        return roles.create_role(
            obj.name, description=obj.description, type=obj.type, permissions=[], caller=caller
        )

    def change(self, obj: Role, form: Any, caller: Caller) -> None:
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        if changes:
            roles.update_role(obj.pk, changes, caller=caller)

    def remove(self, obj: Role, form: Any, caller: Caller) -> None:
        roles.delete_role(obj.pk, caller=caller)

    def deletion_checks(self, obj: Role, caller: Caller) -> Any:
        yield partial(roles.check_role_is_unused, obj)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """A role's permissions are replaced as a whole."""
        if not formset.has_changed():
            return
        kept = [row for row in formset.forms if row.cleaned_data and not row.cleaned_data.get("DELETE")]
        permissions = list(dict.fromkeys(held(row.instance) for row in kept))
        roles.update_role(form.instance.pk, {"permissions": permissions}, caller=caller_of(request))


@admin.register(LoginLink)
class LoginLinkFix(ReadOnly):
    list_display = ("user", "created_at", "expires_at", "used_at")
    search_fields = ("user__username",)
    exclude = ("token_hash",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return tuple(name for name in super().get_readonly_fields(request, obj) if name != "token_hash")


@admin.register(LoginFailure)
class LoginFailureFix(ReadOnly):
    list_display = ("account", "address", "failed_at")
    search_fields = ("account", "address")
