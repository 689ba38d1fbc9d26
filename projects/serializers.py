"""A string field that accepts numbers, and a base serializer that rejects unknown members."""

from difflib import get_close_matches
from typing import Any

from rest_framework import serializers

from flagadmin.core.http.fields import Body
from projects.text_values import format_scalar


class TextField(serializers.CharField):
    """A string. Numbers and booleans are converted, as in the reference. Surrounding spaces are kept."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("trim_whitespace", False)
        kwargs.setdefault("allow_blank", True)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        return super().to_internal_value(
            format_scalar(data) if isinstance(data, bool | int | float) else data
        )


class StrictSerializer(Body):
    """Rejects unknown members. The error suggests the most similar known name, else names all."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := [key for key in data if key not in self.fields]):
            raise serializers.ValidationError({key: [self._unknown(key)] for key in unknown})
        return super().to_internal_value(data)

    def _unknown(self, key: str) -> str:
        nearest = get_close_matches(key, self.fields, n=1)
        choices = f"Did you mean {nearest[0]}?" if nearest else f"Available: {', '.join(self.fields)}."
        return f"is not a valid key. {choices}"
