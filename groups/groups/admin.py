"""Groups in the admin site."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin

from flagadmin.core.audit.events import EventType
from flagadmin.core.errors import ValidationError
from groups.access import Caller
from groups.admin_site.base import ActionInline, Subject, SubjectAdmin
from groups.groups import actions
from groups.groups.actions import NewGroup
from groups.groups.approvals import check_approvers_without_group
from groups.models import Group, GroupMembership
from groups.people.actions import check_admins_without_group, lock_admins
from groups.roles.admin import OnlyRootRoles


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
        actions.update_group(obj.group_id, {"users": sorted(users)}, caller=caller)


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
        update=actions.update_group, delete=actions.delete_group, lock=actions.access_group_for_update
    )

    def lock(self, obj: Group, caller: Caller) -> object:
        lock_admins()
        return super().lock(obj, caller)

    def check_values(self, obj: Group, form: forms.ModelForm) -> None:
        names = obj.mappings_sso
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValidationError.at("mappings_sso", "must be a list of names")

    def create(self, obj: Group, form: Any, caller: Caller) -> Group:
        return actions.create_group(NewGroup(**self.values(obj, form.cleaned_data)), caller=caller)

    def deletion_label(self, obj: Group) -> str:
        plan = actions.plan_group_deletion(obj, caller=Caller.system())
        return (
            f"Group {obj}, its {len(plan.members)} memberships and the {len(plan.grants)} roles it gives in projects; "
            f"{len(plan.losing_all)} people lose all access"
        )

    def deletion_checks(self, obj: Group, caller: Caller) -> Any:
        yield partial(check_admins_without_group, obj, caller)
        yield partial(check_approvers_without_group, obj)
