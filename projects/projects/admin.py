"""Projects, environments and who holds which role: fixed through the same functions as the API."""

from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from flagadmin.admin_base import Fix, FixInline, Verbs, bulk, checked_body
from flagadmin.errors import ValidationError
from groups.access import Caller
from groups.models import Grant
from projects.deletion.execute import delete_project
from projects.deletion.plan import plan_project_deletion
from projects.deletion.summary import lost
from projects.environments import actions as environment_actions
from projects.members import actions as project_access
from projects.members.actions import PROJECT_TYPES, Holders
from projects.models import Environment, Project, ProjectEnvironment
from projects.projects import actions
from projects.projects import environments as places
from projects.strategies.serializers import StrategyBody


class ProjectEnvironmentInline(FixInline):
    model = ProjectEnvironment
    fixed = ("environment",)
    fields = ("environment", "default_strategy")
    helps = {
        "default_strategy": 'As the API has it: {"name": …, "parameters": {…}, …}. null: on for everyone.',
    }
    verbose_name_plural = "environments in use here, each with what a flag gets that is on without a strategy"

    def check_values(self, obj: ProjectEnvironment, form: forms.ModelForm) -> None:
        if obj.default_strategy:
            given = checked_body(StrategyBody, obj.default_strategy, "default_strategy")
            obj.default_strategy = places.checked_strategy(obj.project, given)

    def create(self, obj: ProjectEnvironment, form: Any, caller: Caller) -> None:
        places.add_environment(
            obj.project_id, obj.environment_id, default_strategy=obj.default_strategy, caller=caller
        )

    def change(self, obj: ProjectEnvironment, form: Any, caller: Caller) -> None:
        places.set_default_strategy(obj.project_id, obj.environment_id, obj.default_strategy, caller=caller)

    def remove(self, obj: ProjectEnvironment, form: Any, caller: Caller) -> None:
        places.remove_environment(obj.project_id, obj.environment_id, caller=caller)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ()  # a new row needs its environment; the action looks at the stored one


class GrantVerbs(Verbs):
    fields: ClassVar[Any] = ("role", "user", "group")
    raw_id_fields: ClassVar[Any] = ("user", "group")

    def check_values(self, obj: Grant, form: forms.ModelForm) -> None:
        if (obj.user_id is None) == (obj.group_id is None):
            raise ValidationError("A role is given to a user or to a group: name one of them.")
        if obj.role.type not in PROJECT_TYPES:
            raise ValidationError(f"{obj.role} is a root role; it cannot be given in a project.")

    def create(self, obj: Grant, form: Any, caller: Caller) -> Grant:
        project_access.add_roles(obj.project_id, [holder(obj)], [obj.role_id], caller=caller)
        return Grant.objects.get(
            project=obj.project_id, role=obj.role_id, user=obj.user_id, group=obj.group_id
        )

    def remove(self, obj: Grant, form: Any, caller: Caller) -> None:
        project_access.remove_role(obj.project_id, holder(obj), obj.role_id, caller=caller)


class GrantInline(GrantVerbs, FixInline):
    model = Grant
    verbose_name_plural = "roles given here"


def holder(grant: Grant) -> Holders:
    if grant.user_id is not None:
        return Holders("user", (grant.user_id,))
    assert grant.group_id is not None
    return Holders("group", (grant.group_id,))


@admin.register(Grant)
class GrantFix(GrantVerbs, Fix):
    fields: ClassVar[Any] = ("project", "role", "user", "group")
    raw_id_fields: ClassVar[Any] = ("project", "user", "group")
    list_display = ("project", "role", "user", "group", "created_at")
    list_filter = ("role",)
    list_select_related = ("project", "role", "user", "group")
    search_fields = ("project__id", "user__username", "user__name", "group__name")
    ordering = ("project", "id")


@admin.register(Project)
class ProjectFix(Fix):
    list_display = ("id", "name", "archived_at", "flag_limit", "default_stickiness", "created_at")
    list_filter = (("archived_at", admin.EmptyFieldListFilter),)
    search_fields = ("id", "name", "description")
    ordering = ("id",)
    fixed = ("id",)
    helps = {
        "id": "1 to 100 of letters, digits and - . _ ~. It never changes.",
        "default_stickiness": "What new gradual rollouts are kept by: default, random, userId, sessionId or a context "
        "field.",
        "flag_limit": "The most active flags it may have; empty for no limit.",
        "naming_pattern": "A regular expression (RE2) that names of new flags match as a whole.",
        "naming_example": "A name that matches; shown to whoever gives one that does not.",
    }
    readonly_always = ("created_at", "archived_at")
    fieldsets = (
        (None, {"fields": ("id", "name", "description", "created_at", "archived_at")}),
        ("Flags", {"fields": ("default_stickiness", "flag_limit")}),
        ("Names of new flags", {"fields": ("naming_pattern", "naming_example", "naming_description")}),
    )
    inlines = (ProjectEnvironmentInline, GrantInline)
    actions = (
        bulk(
            "archive",
            "Archive the selected projects",
            lambda project, caller: actions.archive_project(project.pk, caller=caller),
        ),
        bulk(
            "revive",
            "Revive the selected projects",
            lambda project, caller: actions.revive_project(project.pk, caller=caller),
        ),
    )

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj is not None else ()

    def check_values(self, obj: Project, form: forms.ModelForm) -> None:
        if problems := actions.problems_of(obj):
            raise ValidationError.of(problems)

    def create(self, obj: Project, form: Any, caller: Caller) -> Project:
        values = {name: value for name, value in form.cleaned_data.items() if name != "environments"}
        return actions.create_project(values, caller=caller)

    def change(self, obj: Project, form: Any, caller: Caller) -> None:
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        if changes:
            actions.update_project(obj.pk, changes, caller=caller)

    def remove(self, obj: Project, form: Any, caller: Caller) -> None:
        delete_project(obj.pk, caller=caller)

    def told(self, obj: Project) -> str:
        plan = plan_project_deletion(obj.pk, caller=Caller.system())
        return f"{lost(plan)}."

    def deletion_blockers(self, obj: Project, caller: Caller) -> list[str]:
        return plan_project_deletion(obj.pk, caller=caller).blockers


@admin.register(Environment)
class EnvironmentFix(Fix):
    list_display = ("name", "type", "enabled", "sort_order")
    list_filter = ("type", "enabled")
    search_fields = ("name", "type")
    fixed = ("name",)
    helps = {
        "name": "1 to 100 of letters, digits and - . _ ~. It never changes.",
        "type": "For example development, test, preproduction, production.",
        "enabled": "Whether new projects use it. Flags stay as they are.",
    }
    readonly_always = ("created_at",)
    fields = ("name", "type", "enabled", "sort_order", "created_at")

    def check_values(self, obj: Environment, form: forms.ModelForm) -> None:
        environment_actions.check_environment_values(obj)

    def create(self, obj: Environment, form: Any, caller: Caller) -> Environment:
        return environment_actions.create_environment(form.cleaned_data, caller=caller)

    def change(self, obj: Environment, form: Any, caller: Caller) -> None:
        environment_actions.update_environment(obj.pk, form.cleaned_data, caller=caller)

    def remove(self, obj: Environment, form: Any, caller: Caller) -> None:
        environment_actions.delete_environment(obj.pk, caller=caller)

    def deletion_checks(self, obj: Environment, caller: Caller) -> Any:
        yield partial(environment_actions.check_environment_is_unused, obj)
