"""Serializer fields for request bodies, with a maximum size for every list, object and string.

Sizes of lists and objects are checked before their content. ``tests/flagadmin/security/test_body_limits.py``
checks that every request body of the API has these limits.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.core.validators import MaxLengthValidator
from django.utils.timezone import is_naive
from rest_framework import serializers

MAX_NAME_LENGTH = 255  # characters
MAX_TEXT_LENGTH = 10_000
MAX_VALUE_LENGTH = 500_000  # characters of a strategy parameter or payload: lists of users, JSON documents
MAX_ITEMS = 1000


def limit_field(field: serializers.Field) -> serializers.Field:
    """Limits a string field without a maximum to ``MAX_TEXT_LENGTH``.

    Errors of a choice field name the valid choices.
    """
    if isinstance(field, serializers.ChoiceField):
        field.error_messages["invalid_choice"] = f"must be {_join_alternatives(field.choices)}, not {{input}}"
    if isinstance(field, serializers.CharField) and field.max_length is None:
        field.max_length = MAX_TEXT_LENGTH
        message = f"Must have at most {MAX_TEXT_LENGTH:,} characters."
        field.validators.append(MaxLengthValidator(MAX_TEXT_LENGTH, message=message))
    return field


def _join_alternatives(names: Iterable[str]) -> str:
    """Joins names: ``open``, ``kept or discarded``, ``add, move, remove, replace or test``."""
    *others, last = sorted(names)
    return f"{', '.join(others)} or {last}" if others else last


class NullableText(serializers.CharField):
    """A string that may be empty. Null is read as the empty string."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_null=True, allow_blank=True, **kwargs)

    def run_validation(self, data: Any = serializers.empty) -> str:
        return super().run_validation(data) or ""


class Body(serializers.Serializer):
    """An object in a request body.

    A list (``many=True``) accepts at most ``max_length`` items and no null.
    """

    def get_fields(self) -> dict[str, serializers.Field]:
        return {name: limit_field(field) for name, field in super().get_fields().items()}

    @classmethod
    def many_init(cls, *args: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("max_length", MAX_ITEMS)
        allow_null = kwargs.pop("allow_null", False)
        field = super().many_init(*args, **kwargs)
        # DRF would pass it to the items as well. Serializers copy their fields from these arguments.
        field.allow_null = allow_null
        field._kwargs["allow_null"] = allow_null  # type: ignore[attr-defined]
        return field


class Moment(serializers.DateTimeField):
    """A time with its offset. Without one, whoever sends it may mean their own time."""

    def enforce_timezone(self, value: datetime) -> datetime:
        if is_naive(value):
            raise serializers.ValidationError("must have its offset, as 2026-11-21T09:00:00Z has")
        return super().enforce_timezone(value)


class JsonValue(serializers.JSONField):
    """Any value, null too.

    With `allow_null`, the description would exclude null: "exactly one of anything and null".
    """

    def validate_empty_values(self, data: Any) -> tuple[bool, Any]:
        return (True, None) if data is None else super().validate_empty_values(data)


class ListOf(serializers.ListField):
    """A list of at most ``max_length`` items."""

    max_length: int

    def __init__(self, *, max_length: int = MAX_ITEMS, **kwargs: Any) -> None:
        super().__init__(max_length=max_length, **kwargs)
        limit_field(self.child)

    def to_internal_value(self, data: Any) -> list[Any]:
        if isinstance(data, list) and len(data) > self.max_length:
            raise serializers.ValidationError(
                f"Must have at most {self.max_length:,} items; this has {len(data):,}."
            )
        return super().to_internal_value(data)


class BoundedTexts(ListOf):
    """A list of texts in a request body: its length is limited."""

    child = serializers.CharField()


class Texts(serializers.ListField):
    """A list of texts in a response."""

    child = serializers.CharField()


class MapOf(serializers.DictField):
    """An object with at most ``max_length`` members. Their names have at most ``MAX_NAME_LENGTH`` characters."""

    def __init__(self, *, max_length: int = MAX_ITEMS, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        limit_field(self.child)
        self.max_length = max_length
        self.validators.append(MaxLengthValidator(max_length))

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, dict) and len(data) > self.max_length:
            raise serializers.ValidationError(
                f"Must have at most {self.max_length:,} members; this has {len(data):,}."
            )
        if isinstance(data, dict) and any(len(key) > MAX_NAME_LENGTH for key in data):
            raise serializers.ValidationError(
                f"The name of a member has at most {MAX_NAME_LENGTH} characters."
            )
        return super().to_internal_value(data)


class NameBody(Body):
    name = serializers.CharField()


def validate_body(body: serializers.Serializer) -> dict[str, Any]:
    body.is_valid(raise_exception=True)
    return dict(body.validated_data)
