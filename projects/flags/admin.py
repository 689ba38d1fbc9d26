"""Flags and strategies in the admin site."""

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import InvalidOperation, ValidationError
from flagadmin.core.unreadable_values import check_values
from groups.access import Caller, Permission
from groups.admin_site.base import ActionInline, ActionModelAdmin, AdminActions, Step, make_bulk_action
from groups.admin_site.forms import ActionModelForm, validate_body
from projects.access import access_flag_for_update, group_by_project
from projects.console import flag_url
from projects.flags import actions
from projects.flags import actions as links
from projects.flags import actions as tags
from projects.flags.actions import NewFlag
from projects.flags.archive import actions as archiving
from projects.flags.archive.actions import check_no_children
from projects.flags.dependencies import actions as dependencies
from projects.flags.environments import actions as flag_environments
from projects.flags.serializers import VariantBody
from projects.models import Dependency, Flag, FlagEnvironment, FlagLink, FlagTag, Segment, Strategy
from projects.strategies import actions as strategies
from projects.strategies.fields import COLUMNS, make_strategy_document
from projects.strategies.planned import check_strategy
from projects.strategies.rules import variants_problems
from projects.strategies.serializers import StrategyBody

VARIANTS = '[{"name": …, "weight": 0 to 1000, "weightType": variable or fix, "stickiness": …}]'
CONSTRAINTS = (
    '[{"contextName": …, "operator": …, "values": […] (or "value"), optional "inverted", "caseInsensitive"}]'
)


class OfFlag(ActionInline):
    """Base inline for a flag's rows. An archived flag is read-only until it is revived."""

    def may_change(self, obj: Any) -> bool:
        return not is_archived(obj)


def is_archived(obj: Any) -> bool:
    return isinstance(obj, Flag) and obj.is_archived


class FlagEnvironmentInline(OfFlag):
    model = FlagEnvironment
    fields = ("environment", "enabled", "variants")
    readonly_always = ("environment",)
    extra_help_texts = {"variants": VARIANTS}
    json_lists = {"variants": VariantBody}
    verbose_name_plural = "switch and variants in each environment"

    def check_values(self, obj: FlagEnvironment, form: forms.ModelForm) -> None:
        super().check_values(obj, form)
        check_values(variants_problems(obj.variants, "variants"))

    def change(self, obj: FlagEnvironment, form: Any, caller: Caller) -> None:
        key = (obj.flag.project_id, obj.flag.name, obj.environment_id)
        if "variants" in form.changed_data:
            flag_environments.set_variants(*key, obj.variants, caller=caller)
        if "enabled" in form.changed_data:
            switch = flag_environments.enable_flag if obj.enabled else flag_environments.disable_flag
            switch(*key, caller=caller)


class StrategyForm(ActionModelForm):
    """Adds a field for the strategy's segments, which are stored in separate rows."""

    used_segments = forms.ModelMultipleChoiceField(
        Segment.objects.all(), required=False, label="Segments", help_text="All of them must hold."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            self.initial["used_segments"] = list(self.instance.segments.values_list("pk", flat=True))

    def read_strategy(self) -> dict[str, Any]:
        selected = self.cleaned_data.get("used_segments", ())
        return make_strategy_document(self.instance) | {"segments": [segment.pk for segment in selected]}


class StrategyActions(AdminActions):
    form: Any = StrategyForm
    extra_help_texts = {
        "parameters": 'Strings by name, for example {"rollout": "50", "stickiness": "default"}.',
        "constraints": CONSTRAINTS,
        "variants": VARIANTS,
    }
    fields: ClassVar[Any] = ("environment", *COLUMNS, "used_segments")

    def check_values(self, obj: Strategy, form: Any) -> None:
        if obj.flag_id is not None:
            check_strategy(obj.flag, validate_body(StrategyBody, form.read_strategy()))

    def create(self, obj: Strategy, form: Any, caller: Caller) -> Strategy:
        document = strategies.add_strategy(*locate(obj), form.read_strategy(), caller=caller)
        return Strategy.objects.get(pk=document["id"])

    def change(self, obj: Strategy, form: Any, caller: Caller) -> None:
        if "environment" in form.changed_data:
            raise InvalidOperation("A strategy cannot change its environment. Delete it and add a new one.")
        strategies.update_strategy(*locate(obj), str(obj.pk), form.read_strategy(), caller=caller)

    def remove(self, obj: Strategy, form: Any, caller: Caller) -> None:
        strategies.remove_strategy(*locate(obj), str(obj.pk), caller=caller)


def locate(strategy: Strategy) -> tuple[str, str, str]:
    return strategy.flag.project_id, strategy.flag.name, strategy.environment_id


class StrategyInline(StrategyActions, OfFlag):
    model = Strategy
    offered = (Segment,)

    def order(self, steps: Iterable[Step]) -> Iterable[Step]:
        """Enabled strategies come first: a flag that loses its last enabled strategy is turned off."""
        return sorted(steps, key=lambda step: step[0] == self.remove or step[1].disabled)


class FlagTagInline(OfFlag):
    model = FlagTag
    fields = ("tag_type", "value")
    verbose_name_plural = "tags"

    def check_values(self, obj: FlagTag, form: forms.ModelForm) -> None:
        tags.check_tags([(obj.tag_type_id, obj.value)])

    def create(self, obj: FlagTag, form: Any, caller: Caller) -> None:
        tags.change_tags(obj.flag.name, [(obj.tag_type_id, obj.value)], caller=caller)

    def change(self, obj: FlagTag, form: Any, caller: Caller) -> None:
        old = FlagTag.objects.get(pk=obj.pk)
        new, removed = (obj.tag_type_id, obj.value), (old.tag_type_id, old.value)
        tags.change_tags(obj.flag.name, [new], [removed], caller=caller)

    def remove(self, obj: FlagTag, form: Any, caller: Caller) -> None:
        tags.change_tags(obj.flag.name, [], [(obj.tag_type_id, obj.value)], caller=caller)


class DependencyInline(OfFlag):
    model = Dependency
    fk_name = "flag"
    fields = ("parent", "enabled", "variants")
    extra_help_texts = {
        "enabled": "Whether the parent must be on, or off.",
        "variants": "The parent must have one of these variants; empty: any.",
    }
    raw_id_fields = ("parent",)
    verbose_name_plural = "parents that it depends on"

    def check_values(self, obj: Dependency, form: forms.ModelForm) -> None:
        if not isinstance(obj.variants, list) or not all(isinstance(name, str) for name in obj.variants):
            raise ValidationError.at("variants", "must be a list of variant names")

    def create(self, obj: Dependency, form: Any, caller: Caller) -> None:
        values = {"feature": obj.parent.name, "enabled": obj.enabled, "variants": obj.variants}
        dependencies.add_dependency(obj.flag.project_id, obj.flag.name, values, caller=caller)

    def change(self, obj: Dependency, form: Any, caller: Caller) -> None:
        old = Dependency.objects.select_related("parent").get(pk=obj.pk)
        if old.parent_id != obj.parent_id:
            self.remove(old, form, caller)
        self.create(obj, form, caller)

    def remove(self, obj: Dependency, form: Any, caller: Caller) -> None:
        flag = obj.flag
        dependencies.remove_dependency(flag.project_id, flag.name, obj.parent.name, caller=caller)


class FlagLinkInline(OfFlag):
    model = FlagLink
    fields = ("url", "title")

    def check_values(self, obj: FlagLink, form: forms.ModelForm) -> None:
        links.check_url(obj.url)

    def create(self, obj: FlagLink, form: Any, caller: Caller) -> None:
        links.add_link(obj.flag.project_id, obj.flag.name, obj.url, obj.title, caller=caller)

    def change(self, obj: FlagLink, form: Any, caller: Caller) -> None:
        flag = obj.flag
        links.update_link(flag.project_id, flag.name, str(obj.pk), obj.url, obj.title, caller=caller)

    def remove(self, obj: FlagLink, form: Any, caller: Caller) -> None:
        links.remove_link(obj.flag.project_id, obj.flag.name, str(obj.pk), caller=caller)


class OneFlagAdmin(ActionModelAdmin):
    """Base class of the pages that change a flag or a part of it."""

    def flag(self, obj: Any) -> Flag:
        return obj if isinstance(obj, Flag) else obj.flag

    def lock(self, obj: Any, caller: Caller) -> object:
        flag = self.flag(obj)
        return access_flag_for_update(caller, flag.project_id, flag.name, Permission.UPDATE_FEATURE)

    def get_events(self, obj: Any) -> QuerySet[AuditEvent]:
        return AuditEvent.objects.filter(feature=self.flag(obj).name)

    def view_on_site(self, obj: Any) -> str:
        return flag_url(self.flag(obj).project_id, self.flag(obj).name)


@admin.register(Flag)
class FlagAdmin(OneFlagAdmin):
    list_display = ("name", "project", "type", "stale", "archived_at", "created_at", "description")
    list_filter = (("archived_at", admin.EmptyFieldListFilter), "stale", "type", "project")
    search_fields = ("name", "description")
    list_select_related = ("project",)
    raw_id_fields = ("project", "owner_user", "owner_group")
    readonly_on_change = ("name", "project")
    readonly_always = ("created_at", "created_by", "archived_at")
    fields = (
        "name", "project", "type", "description", "stale", "impression_data", "owner_user", "owner_group",
        "created_at", "created_by", "archived_at",
    )  # fmt: skip
    inlines = (FlagEnvironmentInline, StrategyInline, FlagTagInline, DependencyInline, FlagLinkInline)
    actions = (
        make_bulk_action(
            "archive",
            "Archive the selected flags",
            lambda flags, caller: archiving.archive_flags_of_projects(group_by_project(flags), caller=caller),
        ),
        make_bulk_action(
            "revive",
            "Revive the selected flags, switched off",
            lambda flags, caller: [
                flag
                for project_id, names in group_by_project(flags).items()  # in the order of locks
                for flag in archiving.revive_flags(project_id, names, caller=caller)
            ],
        ),
    )

    def may_change(self, obj: Any) -> bool:
        return not is_archived(obj)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Saves strategies first: a flag that is turned on without one gets one that is on for everyone."""
        ordered = sorted(formsets, key=lambda formset: formset.model is not Strategy)
        super().save_related(request, form, ordered, change)

    def create(self, obj: Flag, form: Any, caller: Caller) -> Flag:
        values = self.values(obj, form.cleaned_data)
        return actions.create_flag(values.pop("project_id"), NewFlag(**values), caller=caller)

    def change(self, obj: Flag, form: Any, caller: Caller) -> None:
        changes = self.values(obj, form.changed_data)
        actions.update_flag(obj.project_id, obj.name, changes, caller=caller)

    def remove(self, obj: Flag, form: Any, caller: Caller) -> None:
        archiving.delete_flags(obj.project_id, [obj.name], caller=caller)

    def deletion_checks(self, obj: Flag, caller: Caller) -> Any:
        yield partial(archiving.check_archived, obj)
        yield partial(check_no_children, [obj], "deleted")


@admin.register(Strategy)
class StrategyAdmin(StrategyActions, OneFlagAdmin):
    """A list for finding strategies, which each flag's page also shows."""

    list_display = ("flag", "environment", "name", "title", "disabled", "sort_order")
    list_filter = ("name", "environment", "disabled")
    list_select_related = ("flag", "environment")
    search_fields = ("flag__name", "title", "name")
    raw_id_fields = ("flag",)
    ordering = ("flag__name", "environment", "sort_order", "id")
    fields: ClassVar[Any] = ("flag", *StrategyActions.fields)
    readonly_on_change = ("flag", "environment")
