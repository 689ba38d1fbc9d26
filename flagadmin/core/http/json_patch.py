"""JSON Patch (RFC 6902) for PATCH bodies, applied to the document that GET returns."""

from collections.abc import Collection
from copy import deepcopy
from typing import Any

import jsonpatch
import jsonpointer
from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.fields import MAX_TEXT_LENGTH, Body, JsonValue

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
