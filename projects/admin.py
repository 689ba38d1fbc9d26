"""The admin site's pages of projects and of everything in them. Flags have theirs in ``projects.flags.admin``."""

from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import ValidationError, check_problems
from groups.access import Caller, Permission
from groups.admin_site.base import (
    ActionInline,
    ActionModelAdmin,
    AdminActions,
    ReadOnlyModelAdmin,
    Subject,
    SubjectAdmin,
    make_bulk_action,
)
from groups.admin_site.forms import validate_body
from groups.models import ApiToken, ApiTokenProject, Grant
from groups.people import personal_tokens
from projects.access import access_project_for_update
from projects.applications.cleanup import delete_application
from projects.context_fields import actions as context_fields
from projects.deletion.execute import delete_project
from projects.deletion.pages import describe_loss
from projects.deletion.plan import plan_project_deletion
from projects.environments import actions as environments
from projects.flags.admin import CONSTRAINTS
from projects.members import actions as members
from projects.members.actions import Holders
from projects.models import (
    Application,
    ApplicationInstance,
    ContextField,
    Environment,
    FlagLastSeen,
    LifecycleStage,
    Project,
    ProjectEnvironment,
    ProjectRevision,
    Segment,
    StrategyType,
    TagType,
)
from projects.projects import actions as project_actions
from projects.projects import environments as places
from projects.projects.settings import SETTINGS
from projects.segments import actions as segments
from projects.strategies import strategy_types
from projects.strategies.serializers import ConstraintBody, StrategyBody
from projects.tag_types import actions as tag_types
from projects.tokens import actions as tokens
from projects.tokens.access import access_token_for_update


@admin.register(Environment)
class EnvironmentAdmin(SubjectAdmin):
    list_display = ("name", "type", "enabled", "sort_order")
    list_filter = ("type", "enabled")
    search_fields = ("name", "type")
    readonly_on_change = ("name",)
    readonly_always = ("created_at",)
    fields = ("name", "type", "enabled", "sort_order", "created_at")
    extra_help_texts = {"enabled": "Add to new projects."}
    event_types = (EventType.ENVIRONMENT_UPDATED,)
    subject = Subject(
        create=environments.create_environment,
        update=environments.update_environment,
        delete=environments.delete_environment,
        lock=environments.access_environment_for_update,
        check=environments.check_environment_values,
        deletion_checks=(environments.check_environment_is_unused,),
    )


@admin.register(TagType)
class TagTypeAdmin(SubjectAdmin):
    list_display = ("name", "description", "icon", "color")
    search_fields = ("name", "description")
    readonly_on_change = ("name",)
    readonly_always = ("created_at",)
    fields = ("name", "description", "icon", "color", "created_at")
    extra_help_texts = {"color": "For example #FFFFFF."}
    event_types = (EventType.TAG_TYPE_UPDATED,)
    subject = Subject(
        create=tag_types.create_tag_type,
        update=tag_types.update_tag_type,
        delete=tag_types.delete_tag_type,
        lock=partial(tag_types.access_tag_type_for_update, permission=Permission.UPDATE_TAG_TYPE),
        check=tag_types.check_tag_type,
        deletion_checks=(tag_types.check_tag_type_is_unused,),
    )


@admin.register(ContextField)
class ContextFieldAdmin(SubjectAdmin):
    list_display = ("name", "description", "stickiness", "sort_order", "project")
    list_filter = ("stickiness", "project")
    search_fields = ("name", "description")
    raw_id_fields = ("project",)
    readonly_on_change = ("name", "project")
    readonly_always = ("created_at",)
    fields = ("name", "description", "stickiness", "sort_order", "legal_values", "project", "created_at")
    extra_help_texts = {"legal_values": '[{"value": …, "description": …}]; empty: any.'}
    event_types = (EventType.CONTEXT_FIELD_UPDATED,)
    subject = Subject(
        create=context_fields.create_context_field,
        update=context_fields.update_context_field,
        delete=context_fields.delete_context_field,
        lock=partial(
            context_fields.access_context_field_for_update, permission=Permission.UPDATE_CONTEXT_FIELD
        ),
        check=context_fields.check_context_field,
    )


@admin.register(StrategyType)
class StrategyTypeAdmin(SubjectAdmin):
    list_display = ("name", "title", "built_in", "deprecated", "description")
    list_filter = ("built_in", "deprecated")
    search_fields = ("name", "title", "description")
    readonly_on_change = ("name",)
    readonly_always = ("built_in",)
    fields = ("name", "title", "description", "parameters", "deprecated", "sort_order", "built_in")
    extra_help_texts = {
        "parameters": '[{"name": …, "type": string, percentage, list, number or boolean, "required": …}]',
    }
    event_types = (EventType.STRATEGY_UPDATED, EventType.STRATEGY_DEPRECATED, EventType.STRATEGY_REACTIVATED)
    subject = Subject(
        create=strategy_types.create_strategy_type,
        update=strategy_types.update_strategy_type,
        delete=strategy_types.delete_strategy_type,
        lock=partial(strategy_types.access_strategy_type_for_update, permission=Permission.UPDATE_STRATEGY),
        check=strategy_types.check_strategy_type,
        deletion_checks=(strategy_types.check_not_built_in, strategy_types.check_strategy_type_is_unused),
    )


@admin.register(Segment)
class SegmentAdmin(SubjectAdmin):
    list_display = ("name", "id", "project", "description", "created_by", "created_at")
    list_filter = ("project",)
    search_fields = ("name", "description")
    raw_id_fields = ("project",)
    readonly_always = ("created_by", "created_at")
    fields = ("name", "description", "constraints", "project", "created_by", "created_at")
    extra_help_texts = {"constraints": CONSTRAINTS}
    json_lists = {"constraints": ConstraintBody}
    event_types = (EventType.SEGMENT_UPDATED,)
    subject = Subject(
        create=segments.create_segment,
        update=segments.update_segment,
        delete=segments.delete_segment,
        lock=partial(segments.access_segment_for_update, permission=Permission.UPDATE_SEGMENT),
        check=segments.check_segment,
        deletion_checks=(segments.check_segment_is_unused,),
    )


class GrantActions(AdminActions):
    fields: ClassVar[Any] = ("role", "user", "group")
    raw_id_fields: ClassVar[Any] = ("user", "group")

    def check_values(self, obj: Grant, form: forms.ModelForm) -> None:
        if (obj.user_id is None) == (obj.group_id is None):
            raise ValidationError("Choose either a user or a group.")
        if obj.role.is_root:
            raise ValidationError(f"{obj.role} is a root role and cannot be granted in a project.")

    def create(self, obj: Grant, form: Any, caller: Caller) -> Grant:
        members.add_roles(obj.project_id, [find_holder(obj)], [obj.role_id], caller=caller)
        return Grant.objects.get(
            project=obj.project_id, role=obj.role_id, user=obj.user_id, group=obj.group_id
        )

    def remove(self, obj: Grant, form: Any, caller: Caller) -> None:
        members.remove_role(obj.project_id, find_holder(obj), obj.role_id, caller=caller)


class GrantInline(GrantActions, ActionInline):
    model = Grant
    verbose_name_plural = "roles granted here"


def find_holder(grant: Grant) -> Holders:
    if grant.user_id is not None:
        return Holders("user", (grant.user_id,))
    assert grant.group_id is not None
    return Holders("group", (grant.group_id,))


@admin.register(Grant)
class GrantAdmin(GrantActions, ActionModelAdmin):
    fields: ClassVar[Any] = ("project", "role", "user", "group")
    raw_id_fields: ClassVar[Any] = ("project", "user", "group")
    list_display = ("project", "role", "user", "group", "created_at")
    list_filter = ("role",)
    list_select_related = ("project", "role", "user", "group")
    search_fields = ("project__id", "user__username", "user__name", "group__name")
    ordering = ("project", "id")


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


@admin.register(Application)
class ApplicationAdmin(ReadOnlyModelAdmin):
    list_display = ("name", "created_at")
    search_fields = ("name",)

    def remove(self, obj: Application, form: Any, caller: Caller) -> None:
        delete_application(obj.name, caller=caller)


admin.site.register(
    ApplicationInstance,
    ReadOnlyModelAdmin,
    list_display=("instance_id", "application", "environment", "sdk_version", "sdk_type", "seen_at"),
    list_filter=("environment", "sdk_type"),
    list_select_related=("application",),
    search_fields=("instance_id", "application__name", "sdk_version"),
)
admin.site.register(
    FlagLastSeen,
    ReadOnlyModelAdmin,
    list_display=("flag", "environment", "seen_at"),
    list_filter=("environment",),
    list_select_related=("flag",),
    search_fields=("flag__name",),
)
admin.site.register(
    LifecycleStage,
    ReadOnlyModelAdmin,
    list_display=("flag", "stage", "entered_at"),
    list_filter=("stage",),
    list_select_related=("flag",),
    search_fields=("flag__name",),
)
admin.site.register(
    ProjectRevision,
    ReadOnlyModelAdmin,
    list_display=("project_id", "revision"),
    search_fields=("project_id",),
)


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
    @property
    def fieldsets(self) -> Any:  # type: ignore[override]
        groups = {
            group: [setting.field for setting in settings]
            for group, settings in groupby(SETTINGS, key=attrgetter("group"))
        }
        first = (None, {"fields": ["id", *groups.pop("General"), "created_at", "archived_at"]})
        return [first, *((group, {"fields": names}) for group, names in groups.items())]

    list_display = ("id", "name", "archived_at", "flag_limit", "default_stickiness", "created_at")
    list_filter = (("archived_at", admin.EmptyFieldListFilter),)
    search_fields = ("id", "name", "description")
    ordering = ("id",)
    readonly_on_change = ("id",)
    extra_help_texts = {"flag_limit": "Maximum number of active flags. Leave empty for no limit."}
    readonly_always = ("created_at", "archived_at")
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
