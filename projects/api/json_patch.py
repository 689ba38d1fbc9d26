"""Bodies of PATCH: a JSON Patch (RFC 6902), applied to the document that GET shows."""

from collections.abc import Collection
from copy import deepcopy
from typing import Any

import jsonpatch
import jsonpointer
from rest_framework import serializers

from flagadmin.errors import ValidationError
from flagadmin.fields import LONGEST_TEXT, Body


class PatchOperation(Body):
    """One step of a JSON Patch. No copy: a few of them make a document grow without bounds."""

    op = serializers.ChoiceField(choices=["add", "remove", "replace", "move", "test"])
    path = serializers.CharField(help_text="JSON Pointer: /description")
    value = serializers.JSONField(required=False, allow_null=True)

    def get_fields(self) -> dict[str, serializers.Field]:
        return {
            **super().get_fields(),
            "from": serializers.CharField(required=False, max_length=LONGEST_TEXT),
        }


def patched(document: Any, operations: Any) -> Any:
    """The document after these operations. Raises ValidationError for a bad patch, or one that does not fit."""
    body = PatchOperation(data=operations, many=True)
    body.is_valid(raise_exception=True)
    after = deepcopy(document)
    for number, operation in enumerate(operations):
        after = _applied(after, operation, f"[{number}]")
    return after


def _applied(document: Any, operation: dict[str, Any], place: str) -> Any:
    try:
        return jsonpatch.apply_patch(document, [operation], in_place=True)
    except jsonpatch.JsonPatchTestFailed as exc:
        raise ValidationError.at(f"{place}.value", f"{operation['path']} has another value.") from exc
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, KeyError) as exc:
        raise ValidationError.at(place, f"cannot be applied: {exc}") from exc


def patched_object(document: dict[str, Any], operations: Any, changeable: Collection[str]) -> dict[str, Any]:
    """The same for an object of which only these members may change; one that is removed is not there any more."""
    after = patched(document, operations)
    if not isinstance(after, dict):
        raise ValidationError("The patch replaces the whole object; patch its members.")
    changed = {key for key in document.keys() | after.keys() if document.get(key) != after.get(key)}
    if fixed := sorted(changed.difference(changeable)):
        raise ValidationError(f"{', '.join(fixed)} cannot be changed here. Can be: {', '.join(changeable)}.")
    return after
