"""The forms of the admin site: JSON, dates and the problems that actions find."""

import json
from typing import Any, ClassVar

from django import forms
from django.core import exceptions
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
