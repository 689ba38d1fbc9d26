"""Serializer fields for request bodies, with a maximum size for every list, object and string.

Sizes of lists and objects are checked before their content. ``tests/flagadmin/security/test_body_limits.py``
checks that every request body of the API has these limits.

PATCH bodies are JSON Patch (RFC 6902), applied to the document that GET returns.

Reads ids, booleans and keywords from paths and query strings.
"""

import re
from collections.abc import Collection, Iterable
from copy import deepcopy
from datetime import datetime
from typing import Any

import jsonpatch
import jsonpointer
from django.core.validators import MaxLengthValidator
from django.utils.timezone import is_naive
from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers
from rest_framework.request import Request

from flagadmin.core.errors import NotFound, ValidationError
from flagadmin.core.http.responses import iso

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
        # DRF would also pass it to the items. Serializers copy their fields from these arguments.
        field.allow_null = allow_null
        field._kwargs["allow_null"] = allow_null  # type: ignore[attr-defined]
        return field


class Time(serializers.DateTimeField):
    """A time in an answer, as ``iso`` writes it."""

    def to_representation(self, value: datetime) -> str:
        return iso(value)


class Moment(serializers.DateTimeField):
    """A time with its offset. Without an offset, the sender may mean their local time."""

    def enforce_timezone(self, value: datetime) -> datetime:
        if is_naive(value):
            raise serializers.ValidationError("must have its offset, as 2026-11-21T09:00:00Z has")
        return super().enforce_timezone(value)


class JsonValue(serializers.JSONField):
    """Any value, including null.

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
    """A list of texts in a request body, with a limited length."""

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


NEEDED = {"add": "value", "replace": "value", "test": "value", "move": "from"}


class PatchOperation(Body):
    """A JSON Patch operation. "copy" is not supported: a few could make a document grow exponentially."""

    op = serializers.ChoiceField(choices=["add", "remove", "replace", "move", "test"])
    path = serializers.CharField(
        allow_blank=True, help_text='JSON Pointer: /description, or "" for all of it'
    )
    value = JsonValue(required=False)

    def get_fields(self) -> dict[str, serializers.Field]:
        return {
            **super().get_fields(),
            "from": serializers.CharField(required=False, allow_blank=True, max_length=MAX_TEXT_LENGTH),
        }

    def validate_path(self, path: str) -> str:
        if path and not path.startswith("/"):
            raise serializers.ValidationError(f'must be "" or start with "/", not {path}')
        return path

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if (needed := NEEDED.get(attrs["op"], "op")) not in attrs:
            raise serializers.ValidationError({needed: f"is required for {attrs['op']}"})
        removed = {"remove": "path", "move": "from"}.get(attrs["op"], "op")
        if not attrs[removed]:
            raise serializers.ValidationError({removed: "everything cannot be removed; replace it"})
        return attrs


def make_patch_example(path: str, value: Any) -> OpenApiExample:
    operation = {"op": "replace", "path": path, "value": value}
    return OpenApiExample("Replace one value", [operation], request_only=True)


def apply_patch(document: Any, operations: Any) -> Any:
    """The patched document. Raises ValidationError for an invalid or inapplicable patch."""
    body = PatchOperation(data=operations, many=True)
    body.is_valid(raise_exception=True)
    after = deepcopy(document)
    for number, operation in enumerate(operations):
        after = _apply(after, operation, f"[{number}]")
    return after


def _apply(document: Any, operation: dict[str, Any], path: str) -> Any:
    try:
        return jsonpatch.apply_patch(document, [operation], in_place=True)
    except jsonpatch.JsonPatchTestFailed as exc:
        raise ValidationError.at(f"{path}.value", f"{operation['path']} has a different value.") from exc
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, KeyError) as exc:
        pointers = " or ".join(str(operation[key]) or '""' for key in ("from", "path") if key in operation)
        raise ValidationError.at(path, f"{pointers} does not exist.") from exc


def patch_object(document: dict[str, Any], operations: Any, changeable: Collection[str]) -> dict[str, Any]:
    """The patched object. Raises ValidationError if the patch changes members other than ``changeable``."""
    after = apply_patch(document, operations)
    if not isinstance(after, dict):
        raise ValidationError("The patch replaces the object by something else.")
    changed = {key for key in document.keys() | after.keys() if document.get(key) != after.get(key)}
    if fixed := sorted(changed.difference(changeable)):
        raise ValidationError(f"{', '.join(fixed)} cannot be changed here. Can be: {', '.join(changeable)}.")
    return after


_NUMBER = re.compile(r"-?[0-9]+")
_MAX_ID = 2**63 - 1


def is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def read_id(text: str) -> int | None:
    return int(text) if is_id(text) else None


def path_id(text: str, kind: str, name: str = "id") -> int:
    """The id as an integer. Raises ValidationError if it is not one, NotFound if nothing can have it.

    ``kind`` names the object (``Segment``), ``name`` the parameter.
    """
    if not _NUMBER.fullmatch(text):
        raise ValidationError.at(name, f"{text[:100]} is not an id. Ids are whole numbers.")
    if len(text) > 20 or not 0 < int(text) <= _MAX_ID:
        raise NotFound(f"{kind} with id {text[:100]} not found.")
    return int(text)


_BOOLEANS = {"true": True, "1": True, "false": False, "0": False, "": False}


def read_boolean(request: Request, name: str) -> bool:
    """Reads a boolean; False if it is absent. Raises ValidationError for values other than true, false, 1 and 0."""
    text = request.query_params.get(name, "")
    if text not in _BOOLEANS:
        raise ValidationError.at(name, f'must be true or false, not "{text[:100]}"')
    return _BOOLEANS[text]


def has_keyword(request: Request, name: str, keyword: str) -> bool:
    """Whether the parameter is the keyword. Raises ValidationError for any other value."""
    text = request.query_params.get(name, "")
    if text not in ("", keyword):
        raise ValidationError.at(name, f'must be {keyword} or absent, not "{text[:100]}"')
    return text == keyword
