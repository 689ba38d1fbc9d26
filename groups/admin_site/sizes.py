"""No page of the admin site grows with the data: what is too long for a form is told, and stays as it is.

A long value is shown as a summary, and inline rows that would not fit are left out, with a link to where they are
edited one by one.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import F, JSONField, Model, Sum, TextField
from django.db.models.functions import Cast, Coalesce, Length
from django.forms.models import _get_foreign_key
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

MAX_CHARACTERS = 50_000  # in a value of a form, and in the rows of an inline
ROW_CHARACTERS = 3_000  # of an inline row without its values
OPTION_CHARACTERS = 80  # of a choice in it


@cache
def make_length_field(name: str, label: str) -> Callable[[Any], str]:
    """A read-only field that stands for the long value of another one."""

    @admin.display(description=label)
    def shown(obj: Any) -> str:
        return f"{measure_length(getattr(obj, name)):,} characters: too long for this form. Saving keeps it as it is."

    return shown


def measure_length(value: Any) -> int:
    return len(value if isinstance(value, str) else json.dumps(value))


def find_long_fields(obj: Model | None) -> dict[str, Callable[[Any], str]]:
    """Finds the fields of `obj` whose values are too long for a form, with what is shown instead of each."""
    text_fields = [] if obj is None else [field for field in obj._meta.fields if _is_text(field)]
    long = (field for field in text_fields if measure_length(getattr(obj, field.name) or "") > MAX_CHARACTERS)
    return {field.name: make_length_field(field.name, str(field.verbose_name)) for field in long}


def _is_text(field: Any) -> bool:
    return isinstance(field, JSONField | TextField)


class BoundedFormAdmin(admin.ModelAdmin):
    """A change form that leaves out what is too long for it."""

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        long: dict[Any, Any] = dict(find_long_fields(obj))
        return [
            (
                title,
                options | {"fields": list(dict.fromkeys(long.get(name, name) for name in options["fields"]))},
            )
            for title, options in super().get_fieldsets(request, obj)
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*super().get_readonly_fields(request, obj), *find_long_fields(obj).values())

    def get_inline_instances(self, request: HttpRequest, obj: Any = None) -> Any:
        return [inline for inline in super().get_inline_instances(request, obj) if fits(inline, obj)]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        obj = context["original"]
        inlines = super().get_inline_instances(request, obj)
        context["left_out"] = [describe_left_out(inline, obj) for inline in inlines if not fits(inline, obj)]
        return super().render_change_form(request, context, *args, **kwargs)


def rows(inline: Any, obj: Model) -> Any:
    key = _get_foreign_key(inline.parent_model, inline.model, fk_name=inline.fk_name)
    return inline.model._base_manager.filter(**{key.name: obj}), key.name


def fits(inline: Any, obj: Model | None) -> bool:
    if obj is None or obj._state.adding:
        return True
    inline_rows, _ = rows(inline, obj)
    names = [field.name for field in inline.model._meta.fields if _is_text(field)]
    lengths: Any = sum((Coalesce(Length(Cast(F(name), TextField())), 0) for name in names), start=0)
    characters = inline_rows.aggregate(sum=Sum(lengths))["sum"] if names else 0
    return (characters or 0) + inline_rows.count() * (
        ROW_CHARACTERS + OPTION_CHARACTERS * count_options(inline)
    ) <= MAX_CHARACTERS


def count_options(inline: Any) -> int:
    """The number of choices that each row offers."""
    names = set(inline.fields or ()) - {*inline.raw_id_fields, *inline.readonly_always}
    keys = [field for field in inline.model._meta.fields if field.name in names and field.related_model]
    offered = [*(field.related_model for field in keys), *inline.offered]
    return sum(model._base_manager.count() for model in offered)


def describe_left_out(inline: Any, obj: Model) -> tuple[str, int, str]:
    """Returns the name of the rows, their number, and the list in which each has a page of its own."""
    inline_rows, key = rows(inline, obj)
    meta = inline.model._meta
    try:
        listed = reverse(f"{inline.admin_site.name}:{meta.app_label}_{meta.model_name}_changelist")
    except NoReverseMatch:
        listed = ""
    query = urlencode({f"{key}__{obj._meta.pk.name}__exact": obj.pk})
    return str(inline.verbose_name_plural), inline_rows.count(), f"{listed}?{query}" if listed else ""
