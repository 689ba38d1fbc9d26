"""The advanced playground: splits a context with several values into one context for each combination.

Every string in the context may have several values, separated by commas; each combination is a separate context, in
every environment.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

from flagadmin.core.errors import ValidationError

MAX_ANSWER = 20_000_000  # bytes


def list_invalid_properties(context: dict[str, Any]) -> list[str]:
    """Top-level keys whose value is not a string: ignored with a warning, as in the reference."""
    return [key for key, value in context.items() if key != "properties" and not isinstance(value, str)]


def split_context(context: dict[str, Any]) -> dict[str, list[str]]:
    """Each field's values. Merges properties into the top level (the later key wins); appName comes last."""
    fields: dict[str, list[str]] = {}
    for key, value in context.items():
        if key == "properties":
            fields.update((name, text.split(",")) for name, text in value.items())
        else:
            fields[key] = value.split(",")
    if "appName" in fields:
        fields["appName"] = fields.pop("appName")
    return fields


def count_contexts(fields: dict[str, list[str]]) -> int:
    total = 1
    for values in fields.values():
        total *= len(values)
    return total


def combine_contexts(fields: dict[str, list[str]]) -> Iterator[dict[str, str]]:
    """Every combination; the first field varies slowest."""
    for values in product(*fields.values()):
        yield dict(zip(fields, values, strict=True))


def check_answer_size(size: int, done: int) -> None:
    """Raises ValidationError if the answer to this many evaluations would exceed the byte limit."""
    if size > MAX_ANSWER:
        raise ValidationError(
            f"The answer would have more than {MAX_ANSWER // 1_000_000} MB, which {done:,} evaluations fill already. "
            "Reduce the environments, the flags or the combinations of context values."
        )


def check_size(*, environments: int, flags: int, contexts: int, limit: int) -> None:
    """Raises ValidationError if there are more evaluations than the limit."""
    if environments * flags * contexts > limit:
        raise ValidationError(
            f"This would be {environments * flags * contexts:,} evaluations; the limit is {limit:,}. "
            f"Reduce the environments ({environments}), the flags ({flags:,}) "
            f"or the combinations of context values ({contexts:,})."
        )
