"""Segments, context fields, strategy types and tag types: fixed through the same functions as the API."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin

from flagadmin.admin_base import Fix, checked_body
from groups.access import Caller
from projects.context_fields import actions as context_fields
from projects.models import ContextField, Segment, StrategyType, TagType
from projects.segments import actions as segments
from projects.strategies import strategy_types
from projects.strategies.constraint_serializers import ConstraintBody
from projects.tag_types import actions as tag_types

TEXTS = ("description", "title", "icon", "color")


def values(form: Any, *, blank: bool = False) -> dict[str, Any]:
    """What the form gives by model field, projects by id. ``blank``: texts that are empty are so, and not null."""
    given = dict(form.cleaned_data)
    if "project" in given:
        project = given.pop("project")
        given["project_id"] = project.pk if project else None
    return given if blank else {k: None if k in TEXTS and v == "" else v for k, v in given.items()}


@admin.register(Segment)
class SegmentFix(Fix):
    list_display = ("name", "id", "project", "description", "created_by", "created_at")
    list_filter = ("project",)
    search_fields = ("name", "description")
    raw_id_fields = ("project",)
    readonly_always = ("created_by", "created_at")
    fields = ("name", "description", "constraints", "project", "created_by", "created_at")
    helps = {
        "constraints": 'A list; all must hold. Each: {"contextName": …, "operator": …, "values": […]} or "value"; '
        'optional "inverted" and "caseInsensitive".',
        "project": "The one project whose strategies may use it; empty for all.",
    }

    def check_values(self, obj: Segment, form: forms.ModelForm) -> None:
        obj.constraints = checked_body(ConstraintBody, obj.constraints, "constraints", many=True)
        segments.check_segment(obj)

    def create(self, obj: Segment, form: Any, caller: Caller) -> Segment:
        return segments.create_segment(values(form) | {"constraints": obj.constraints}, caller=caller)

    def change(self, obj: Segment, form: Any, caller: Caller) -> None:
        changes = values(form) | {"constraints": obj.constraints}
        segments.update_segment(obj.pk, changes, caller=caller)

    def remove(self, obj: Segment, form: Any, caller: Caller) -> None:
        segments.delete_segment(obj.pk, caller=caller)

    def deletion_checks(self, obj: Segment, caller: Caller) -> Any:
        yield partial(segments.check_segment_is_unused, obj)


@admin.register(ContextField)
class ContextFieldFix(Fix):
    list_display = ("name", "description", "stickiness", "sort_order", "project")
    list_filter = ("stickiness", "project")
    search_fields = ("name", "description")
    raw_id_fields = ("project",)
    fixed = ("name", "project")
    helps = {
        "name": "1 to 100 of letters, digits and - . _ ~. It never changes.",
        "stickiness": "Whether rollouts can be kept by it.",
        "legal_values": 'The only values that constraints may name: [{"value": …, "description": …}]. Empty: any.',
        "project": "The one project it is for; empty for all.",
    }
    readonly_always = ("created_at",)
    fields = ("name", "description", "stickiness", "sort_order", "legal_values", "project", "created_at")

    def check_values(self, obj: ContextField, form: forms.ModelForm) -> None:
        context_fields.check_context_field(obj)

    def create(self, obj: ContextField, form: Any, caller: Caller) -> ContextField:
        return context_fields.create_context_field(values(form), caller=caller)

    def change(self, obj: ContextField, form: Any, caller: Caller) -> None:
        context_fields.update_context_field(obj.pk, values(form), caller=caller)

    def remove(self, obj: ContextField, form: Any, caller: Caller) -> None:
        context_fields.delete_context_field(obj.pk, caller=caller)


@admin.register(StrategyType)
class StrategyTypeFix(Fix):
    list_display = ("name", "title", "built_in", "deprecated", "description")
    list_filter = ("built_in", "deprecated")
    search_fields = ("name", "title", "description")
    fixed = ("name",)
    readonly_always = ("built_in",)
    helps = {
        "name": "1 to 100 of letters, digits and - . _ ~. It never changes.",
        "parameters": '[{"name": …, "type": string, percentage, list, number or boolean, "required": …}]',
        "deprecated": "No longer offered for new strategies; those there are go on.",
    }
    fields = ("name", "title", "description", "parameters", "deprecated", "sort_order", "built_in")

    def check_values(self, obj: StrategyType, form: forms.ModelForm) -> None:
        strategy_types.check_strategy_type(obj)

    def create(self, obj: StrategyType, form: Any, caller: Caller) -> StrategyType:
        return strategy_types.create_strategy_type(values(form, blank=True), caller=caller)

    def change(self, obj: StrategyType, form: Any, caller: Caller) -> None:
        strategy_types.update_strategy_type(obj.pk, values(form, blank=True), caller=caller)

    def remove(self, obj: StrategyType, form: Any, caller: Caller) -> None:
        strategy_types.delete_strategy_type(obj.pk, caller=caller)

    def deletion_checks(self, obj: StrategyType, caller: Caller) -> Any:
        yield partial(strategy_types.check_not_built_in, obj)
        yield partial(strategy_types.check_strategy_type_is_unused, obj)


@admin.register(TagType)
class TagTypeFix(Fix):
    list_display = ("name", "description", "icon", "color")
    search_fields = ("name", "description")
    fixed = ("name",)
    readonly_always = ("created_at",)
    fields = ("name", "description", "icon", "color", "created_at")
    helps = {"name": "2 to 50 of letters, digits and - . _ ~. It never changes.", "color": "As #FFFFFF."}

    def check_values(self, obj: TagType, form: forms.ModelForm) -> None:
        tag_types.check_tag_type(obj)

    def create(self, obj: TagType, form: Any, caller: Caller) -> TagType:
        return tag_types.create_tag_type(self.given(form), caller=caller)

    def change(self, obj: TagType, form: Any, caller: Caller) -> None:
        tag_types.update_tag_type(obj.pk, self.given(form), caller=caller)

    def remove(self, obj: TagType, form: Any, caller: Caller) -> None:
        tag_types.delete_tag_type(obj.pk, caller=caller)

    def deletion_checks(self, obj: TagType, caller: Caller) -> Any:
        yield partial(tag_types.check_tag_type_is_unused, obj)

    def given(self, form: Any) -> dict[str, Any]:
        return values(form) | {"description": form.cleaned_data["description"]}
