"""Projects and their environments in the admin site."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import check_problems
from groups.access import Caller, Permission
from groups.admin_site.base import ActionInline, Subject, SubjectAdmin, make_bulk_action
from groups.admin_site.forms import validate_body
from projects.access import access_project_for_update
from projects.deletion.execute import delete_project
from projects.deletion.pages import describe_loss
from projects.deletion.plan import plan_project_deletion
from projects.members.admin import GrantInline
from projects.models import Project, ProjectEnvironment
from projects.projects import actions as project_actions
from projects.projects import environments as places
from projects.strategies.serializers import StrategyBody


class ProjectEnvironmentInline(ActionInline):
    model = ProjectEnvironment
    readonly_on_change = ("environment",)
    fields = ("environment", "default_strategy")
    extra_help_texts = {
        "default_strategy": 'As the API has it: {"name": …, "parameters": {…}, …}. null: on for everyone.',
    }
    verbose_name_plural = "environments of the project, with their default strategies"

    def check_values(self, obj: ProjectEnvironment, form: forms.ModelForm) -> None:
        if obj.default_strategy:
            body = validate_body(StrategyBody, obj.default_strategy, "default_strategy")
            obj.default_strategy = places.validate_default_strategy(obj.project, body)

    def create(self, obj: ProjectEnvironment, form: Any, caller: Caller) -> None:
        places.add_environment(
            obj.project_id, obj.environment_id, default_strategy=obj.default_strategy, caller=caller
        )

    def change(self, obj: ProjectEnvironment, form: Any, caller: Caller) -> None:
        places.set_default_strategy(obj.project_id, obj.environment_id, obj.default_strategy, caller=caller)

    def remove(self, obj: ProjectEnvironment, form: Any, caller: Caller) -> None:
        places.remove_environment(obj.project_id, obj.environment_id, caller=caller)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ()  # new rows need an editable environment; actions use the stored one


@admin.register(Project)
class ProjectAdmin(SubjectAdmin):
    list_display = ("id", "name", "archived_at", "flag_limit", "default_stickiness", "created_at")
    list_filter = (("archived_at", admin.EmptyFieldListFilter),)
    search_fields = ("id", "name", "description")
    ordering = ("id",)
    readonly_on_change = ("id",)
    extra_help_texts = {"flag_limit": "Maximum number of active flags; empty: no limit."}
    readonly_always = ("created_at", "archived_at")
    fieldsets = (
        (None, {"fields": ("id", "name", "description", "created_at", "archived_at")}),
        ("Flags", {"fields": ("default_stickiness", "flag_limit", "refuse_broken_expectations")}),
        ("Links", {"fields": ("link_templates", "comment_links")}),
        ("Names of new flags", {"fields": ("naming_pattern", "naming_example", "naming_description")}),
    )
    inlines = (ProjectEnvironmentInline, GrantInline)
    actions = (
        make_bulk_action(
            "archive",
            "Archive the selected projects",
            lambda rows, caller: [project_actions.archive_project(row.pk, caller=caller) for row in rows],
        ),
        make_bulk_action(
            "revive",
            "Revive the selected projects",
            lambda rows, caller: [project_actions.revive_project(row.pk, caller=caller) for row in rows],
        ),
    )
    subject = Subject(
        create=project_actions.create_project,
        update=project_actions.update_project,
        delete=delete_project,
        lock=partial(access_project_for_update, permission=Permission.UPDATE_PROJECT),
        check=lambda project: check_problems(project_actions.problems_of(project)),
    )

    def get_events(self, obj: Project) -> QuerySet[AuditEvent]:
        return AuditEvent.objects.filter(project=obj.pk, feature=None)

    def deletion_label(self, obj: Project) -> str:
        plan = plan_project_deletion(obj.pk, caller=Caller.system())
        return f"{describe_loss(plan)}."

    def deletion_blockers(self, obj: Project, caller: Caller) -> list[str]:
        return plan_project_deletion(obj.pk, caller=caller).blockers
