"""/access/groups/: list, show, create, edit and delete groups."""

from typing import Any

from django import forms
from django.db.models import Count, Q, QuerySet
from django.urls import reverse

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import join_words, list_some, pluralize
from flagadmin.core.lists.pages import MAX_NAMES, Column, Filter, Listing
from groups.console import ActionPage, Breadcrumbs, ConfirmPage, EditPage, FormPage, ListPage, Permission
from groups.groups import actions
from groups.groups.actions import GroupChanges, GroupDeletion, NewGroup, describe_places, read_groups
from groups.groups.console import GROUPS, OneGroup, group_url
from groups.models import Group, GroupMembership, User
from groups.models.people import GroupDocument
from groups.people.console import find_account_by_name, list_root_role_choices, suggest_accounts


class GroupsPage(ListPage):
    title = "Groups"
    lead = "Members have every role their group has."
    noun = "group,groups"
    new = ("group-new", "New group")
    creates = Permission.ADMIN
    none_yet = "No groups yet. A group gives its members roles in one place."
    begin = ("group-new", "Create the first group")
    default_sort = "name"
    columns = (
        Column(
            "name",
            "Group",
            by=("name",),
            cell='<span class="row nowrap"><span class="face" aria-hidden="true">{% icon "people" %}</span><span>'
            '<a href="{% url "group" row.pk %}">{{ row.name }}</a>{% if row.description %}<small class="below">'
            "{{ row.description|truncatechars:120 }}</small>{% endif %}</span></span>",
        ),
        Column("members", "Members", by=("member_count",), numeric=True),
        Column("root_role", "Root role", by=("root_role__name",), none="none"),
        Column("projects", "Projects", by=("project_count",), numeric=True),
    )
    filters = (Filter("q", "Name or member"),)
    api_call = "GET /api/admin/groups"

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        groups = read_groups(self.caller).prefetch_related(None).select_related("root_role")
        if text := values["q"]:
            member = GroupMembership.objects.filter(user__username__icontains=text).values("group")
            groups = groups.filter(Q(name__icontains=text) | Q(pk__in=member))
        readable = self.caller.readable_projects
        counted = None if readable is None else Q(grants__project__in=readable)
        return groups.annotate(
            member_count=Count("memberships", distinct=True),
            project_count=Count("grants__project", distinct=True, filter=counted),
        )


class GroupPage(OneGroup):
    template_name = "groups/group.html"
    parents = (GROUPS,)
    api_call = "GET /api/admin/groups/{group_id}"

    def make_listing(self, rows: QuerySet[Any], page_name: str = "page") -> Listing[Any]:
        return Listing(self.request.GET, rows, columns=(), page_name=page_name)

    def members(self, group: Group) -> Listing[Any]:
        memberships = group.memberships.select_related("user").order_by("user__username")
        filters = (Filter("q", "Member"),)
        if text := filters[0].value(self.request.GET):
            memberships = memberships.filter(
                Q(user__username__icontains=text) | Q(user__name__icontains=text)
            )
        return Listing(self.request.GET, memberships, columns=(), filters=filters)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        group = self.group()
        may_change = self.caller.can(Permission.ADMIN)
        return super().get_context_data(
            **{
                "title": group.name,
                "group": group,
                "url": group_url(group.pk),
                "members": self.members(group),
                "grants": self.make_listing(
                    group.grants.filter(self.caller.match_readable("project"))
                    .select_related("role")
                    .order_by("project_id", "role__name"),
                    "grants-page",
                ),
                "may_change": may_change,
                "known": suggest_accounts() if may_change else [],
                **kwargs,
            }
        )


class GroupForm(forms.Form):
    name = forms.CharField(max_length=255)
    description = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 2}))
    rootRole = forms.TypedChoiceField(
        label="Root role",
        required=False,
        coerce=int,
        empty_value=None,
        help_text="Granted to every member, everywhere. Project roles are granted on a project's access page.",
    )
    mappingsSSO = forms.CharField(
        label="SSO group names", required=False, help_text="Separated by commas.", max_length=2000
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["rootRole"].choices = list_root_role_choices()  # type: ignore[attr-defined]

    def values(self) -> GroupChanges:
        data = self.cleaned_data
        names = (name.strip() for name in data["mappingsSSO"].split(","))
        return {
            "name": data["name"],
            "description": data["description"],
            "root_role": data["rootRole"],
            "mappings_sso": tuple(filter(None, names)),
        }


class NewGroupPage(FormPage):
    template_name = "console/form.html"
    title = "New group"
    form_class = GroupForm
    button = "Create group"
    parents = (GROUPS,)
    api_call = "POST /api/admin/groups"
    api_example: Any = {"name": "Checkout team", "users": []}
    permission = Permission.ADMIN

    def submit(self, form: Any) -> str:
        group = actions.create_group(NewGroup(**form.values()), caller=self.caller)
        return self.done(f"Created group {group.name}. Add its members below.", group_url(group.pk))


class EditGroupPage(EditPage, OneGroup, NewGroupPage):
    title = "Edit {page.edited.name}"
    button = "Save group"
    api_call = "PUT /api/admin/groups/{group_id}"

    def find(self) -> None:
        super().find()
        self.edited = self.group()

    def get_events(self) -> QuerySet[AuditEvent]:
        return AuditEvent.objects.filter(type=EventType.GROUP_UPDATED, after__id=self.group_id)

    def get_current_document(self) -> GroupDocument:
        return self.edited.document()

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (GROUPS, (self.edited.name, group_url(self.group_id)))

    def get_api_body(self) -> dict[str, Any]:
        return {"name": self.edited.name, "rootRole": None}

    def get_initial(self) -> dict[str, Any]:
        group = self.edited
        return {
            "name": group.name,
            "description": group.description,
            "rootRole": group.root_role_id,
            "mappingsSSO": ", ".join(group.mappings_sso),
        }

    def get_form(self, form_class: type[forms.BaseForm] | None = None) -> forms.BaseForm:
        form = super().get_form(form_class)
        if self.edited.scim_id:
            form.fields["name"].disabled = True
            form.fields["name"].help_text = "This name comes from the identity provider."
        return form

    def submit(self, form: Any) -> str:
        expected = self.version.expected
        group = actions.update_group(self.group_id, form.values(), expected=expected, caller=self.caller)
        return self.done(f"Changed group {group.name}.", group_url(group.pk))


class AddMember(ActionPage, OneGroup):
    def act(self) -> str:
        self.caller.check(Permission.ADMIN)
        user = find_account_by_name(self.request.POST.get("who", ""))
        actions.change_members(self.group_id, add=[user.pk], caller=self.caller)
        return f"{user} is now a member."

    def get_success_url(self) -> str:
        return group_url(self.group_id)


class RemoveMember(AddMember):
    def act(self) -> str:
        self.caller.check(Permission.ADMIN)
        user_id = self.kwargs["user_id"]
        actions.change_members(self.group_id, remove=[user_id], caller=self.caller)
        name = User.objects.filter(pk=user_id).values_list("username", flat=True).first()
        return f"{name or 'This account'} is no longer a member."


class DeleteGroupPage(ConfirmPage, OneGroup):
    api_call = "DELETE /api/admin/groups/{group_id}"

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (GROUPS, (self.group().name, group_url(self.group_id)))

    def plan(self) -> dict[str, Any]:
        self.caller.check(Permission.ADMIN)
        plan = actions.plan_group_deletion(self.group(), caller=self.caller)
        name = plan.group.name
        return {
            "title": f"Delete group {name}",
            "lead": describe_deletion(plan),
            "names": list_members(plan),
            "removed_items": [f"the group {name}"]
            + [f"the role {grant.role} in {grant.project_id}, held through it" for grant in plan.grants]
            + [f"its place among the approvers of {describe_places([place])}" for place in plan.approvals]
            + ([f"the root role {plan.group.root_role}, held through it"] if plan.group.root_role else []),
            "kept": "People, projects and roles stay.",
            "blocked": " ".join(error.message for error in plan.blockers),
        }

    def act(self) -> tuple[str, str]:
        self.caller.check(Permission.ADMIN)
        name = self.group().name
        actions.delete_group(self.group_id, caller=self.caller)
        return f"Deleted group {name}.", reverse("groups")


NUMBERS = ("None", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")


def describe_deletion(plan: GroupDeletion) -> str:
    """Describes the consequences, such as ``Beta has 3 members. They lose Member in shop. One has no other
    access …``
    """
    group, count = plan.group, len(plan.members)
    if not count:
        return f"{group.name} has no members. Nobody loses access. {_describe_flags(group)}".rstrip()
    has = f"{group.name} has {pluralize(count, 'member')}."
    return " ".join(
        filter(None, (has, _describe_roles(plan), _describe_losses(plan), _describe_flags(group)))
    )


def list_members(plan: GroupDeletion) -> list[tuple[str, str]]:
    """(member, note) for up to MAX_NAMES members; members who lose all access come first."""
    losing_ids = {user.pk for user in plan.losing_all}
    hidden = len(plan.members) - MAX_NAMES
    members = sorted(plan.members, key=lambda user: user.pk not in losing_ids)
    lines = [
        (
            user.display_name,
            "will see no project" if user.pk in losing_ids else "disabled" * (not user.is_active),
        )
        for user in members[:MAX_NAMES]
    ]
    return [*lines, (f"and {hidden:,} more", "")] if hidden > 0 else lines


def _describe_roles(plan: GroupDeletion) -> str:
    roles = [f"{grant.role} in {grant.project_id}" for grant in plan.grants]
    if plan.group.root_role is not None:
        roles.insert(0, f"{plan.group.root_role} everywhere")
    if not roles:
        return "It gives them no role, so nobody loses access."
    lost = list_some(roles, MAX_NAMES) if len(roles) > MAX_NAMES else join_words(roles)
    return f"They lose {lost}."


def _describe_losses(plan: GroupDeletion) -> str:
    count, all_of = len(plan.losing_all), len(plan.members)
    if not count:
        return ""
    if all_of == 1:
        return "That member has no other access and will see no project."
    number = NUMBERS[count] if count < len(NUMBERS) else str(count)
    has = "has" if count == 1 else "have"
    return f"{number} of them {has} no other access and will see no project."


def _describe_flags(group: Group) -> str:
    owned = group.owned_flags.count()
    return f"It owns {pluralize(owned, 'flag')}, which will have no owner." if owned else ""
