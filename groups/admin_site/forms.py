"""The forms of the admin site: JSON, dates, problems found by actions, and values too long to show.

A long value is shown as a summary. Inline rows that would not fit are left out, with a link to the list in which they
can be edited one by one.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.core import exceptions
from django.db.models import F, JSONField, Model, Sum, TextField
from django.db.models.functions import Cast, Coalesce, Length
from django.forms.models import _get_foreign_key
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from rest_framework import serializers

from flagadmin.core.errors import AppError, EditConflict, ValidationError
from flagadmin.core.http.error_responses import problems_of


class PrettyJsonField(forms.JSONField):
    """A form field that shows JSON indented."""

    widget = forms.Textarea(
        attrs={"rows": 8, "cols": 100, "class": "vLargeTextField json", "spellcheck": "false"}
    )

    def __init__(self, **kwargs: Any) -> None:
        # A hidden copy of each document would only make the page larger.
        super().__init__(**kwargs | {"show_hidden_initial": False})

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, forms.fields.InvalidJSONInput):
            return value
        return json.dumps(value, indent=2, ensure_ascii=False)


class DateTimePicker(forms.DateTimeInput):
    """An input for a date and time (UTC) that uses the browser's own picker."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(attrs={"step": 1}, format="%Y-%m-%dT%H:%M:%S")


class ActionModelForm(forms.ModelForm):
    """A form that also runs the admin's ``check_values`` and shows every problem with its path."""

    page: ClassVar[Any] = None
    conflict: ClassVar[EditConflict | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})

    def _post_clean(self) -> None:
        if self.conflict is not None:
            self.add_error(None, self.conflict.message)
            return
        super()._post_clean()  # type: ignore[misc]
        if self.page is None or set(self.errors) - {exceptions.NON_FIELD_ERRORS}:
            return
        try:
            self.page.check_values(self.instance, self)
        except AppError as error:
            # Replaces the message that names the database constraint.
            self.errors.pop(exceptions.NON_FIELD_ERRORS, None)
            for text in list_sentences(error):
                self.add_error(None, text)


def list_sentences(error: AppError) -> list[str]:
    """The error's problems, each with its path if there are several; otherwise its message."""
    if len(error.details) > 1 and isinstance(error, ValidationError):
        return list(map(str, error.details))
    return [error.message]


def validate_body(body: type[serializers.Serializer], data: Any, path: str = "", **kwargs: Any) -> Any:
    """Validates JSON from a form with the API's serializer. Raises ValidationError with paths."""
    serializer = body(data=data, **kwargs)
    try:
        serializer.is_valid(raise_exception=True)
    except serializers.ValidationError as exc:
        raise ValidationError.of(problems_of(exc.detail, path)) from exc
    return serializer.validated_data


MAX_CHARACTERS = 50_000  # per value of a form, and for the rows of an inline
ROW_CHARACTERS = 3_000  # of an inline row without its values
OPTION_CHARACTERS = 80  # of an option in the row


@cache
def make_length_field(name: str, label: str) -> Callable[[Any], str]:
    """A read-only field that replaces another field's long value."""

    @admin.display(description=label)
    def shown(obj: Any) -> str:
        return f"{measure_length(getattr(obj, name)):,} characters: too long for this form. Saving keeps it as it is."

    return shown


def measure_length(value: Any) -> int:
    return len(value if isinstance(value, str) else json.dumps(value))


def find_long_fields(obj: Model | None) -> dict[str, Callable[[Any], str]]:
    """Finds the fields of `obj` whose values are too long for a form, each with its replacement."""
    text_fields = [] if obj is None else [field for field in obj._meta.fields if _is_text(field)]
    long = (field for field in text_fields if measure_length(getattr(obj, field.name) or "") > MAX_CHARACTERS)
    return {field.name: make_length_field(field.name, str(field.verbose_name)) for field in long}


def _is_text(field: Any) -> bool:
    return isinstance(field, JSONField | TextField)


class BoundedFormAdmin(admin.ModelAdmin):
    """A change form that leaves out values and rows too long for it."""

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
    """Returns the name of the rows, their number, and the list with a page for each."""
    inline_rows, key = rows(inline, obj)
    meta = inline.model._meta
    try:
        listed = reverse(f"{inline.admin_site.name}:{meta.app_label}_{meta.model_name}_changelist")
    except NoReverseMatch:
        listed = ""
    query = urlencode({f"{key}__{obj._meta.pk.name}__exact": obj.pk})
    return str(inline.verbose_name_plural), inline_rows.count(), f"{listed}?{query}" if listed else ""
