"""Lists the fields of a strategy. Documents, rows, exports, imports, forms and the admin site use this list.

A new field needs an entry here, a column of ``Strategy`` with its migration, a member of ``StrategyChanges``
(the request bodies), and an input in the template of the strategy form. Validation and evaluation are
separate.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from playground.engine.definitions import StrategyDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyField:
    """A field: the ``member`` of documents and the ``column`` of the table.

    ``stored`` converts a given value to the stored one; without it, ``rules.strategy_document`` does.
    ``entered`` reads the value from a form, if a single input holds it.
    """

    member: str
    column: str
    is_json: bool = False
    stored: Callable[[Any], Any] | None = None
    entered: Callable[[Mapping[str, Any]], Any] | None = None


def keep_value(value: Any) -> Any:
    return value


def _is_disabled(form: Mapping[str, Any]) -> bool:
    """Reads a switch "enabled". Browsers send nothing if it is off, except for its companion "switch"."""
    return "disabled" in form or ("switch" in form and "enabled" not in form)


FIELDS = (
    StrategyField(member="name", column="name"),
    StrategyField(
        member="title",
        column="title",
        stored=keep_value,
        entered=lambda form: form.get("title", "").strip() or None,
    ),
    StrategyField(member="disabled", column="disabled", stored=bool, entered=_is_disabled),
    StrategyField(member="sortOrder", column="sort_order", stored=keep_value),
    StrategyField(member="parameters", column="parameters", is_json=True),
    StrategyField(member="constraints", column="constraints", is_json=True),
    StrategyField(member="variants", column="variants", is_json=True),
)
MEMBERS = tuple(field.member for field in FIELDS)
COLUMNS = tuple(field.column for field in FIELDS)
SELECTED = ", ".join(f"s.{column}" for column in COLUMNS)
"""The column list of a SELECT from ``projects_strategy s``. ``from_row`` takes the result."""

CONVERTED = tuple((field.member, field.stored) for field in FIELDS if field.stored)
"""The members that ``stored`` converts, with that function."""


def _generate_from_row() -> Callable[..., StrategyDefinition]:
    # Snapshots and imports read a row for each strategy: without a loop, that takes 0.5 µs instead of 1.4.
    members = ", ".join(
        f"{field.member!r}: {f'loads({field.column})' if field.is_json else field.column}" for field in FIELDS
    )
    namespace: dict[str, Any] = {"loads": orjson.loads}
    exec(  # noqa: S102 - constant names, as in dataclasses
        f"def function(values, **others):\n  {', '.join(COLUMNS)} = values\n  return {{{members}, **others}}",
        namespace,
    )
    function: Callable[..., StrategyDefinition] = namespace["function"]
    return function


from_row = _generate_from_row()
"""``from_row(values, **others)``: the document of a row from a raw cursor, which returns jsonb as text, with the
members ``others``."""


def to_row(document: Mapping[str, Any]) -> list[Any]:
    """The values of a document in the order of ``COLUMNS``, with JSON as text."""
    return [
        orjson.dumps(document[field.member]).decode() if field.is_json else document[field.member]
        for field in FIELDS
    ]


def make_strategy_document(strategy: Any, **others: Any) -> StrategyDefinition:
    document: Any = {field.member: getattr(strategy, field.column) for field in FIELDS}
    return document | others


def drop_sort_order(document: Mapping[str, Any]) -> dict[str, Any]:
    """A strategy without its position, also the form compared with ``expected``."""
    return {key: value for key, value in document.items() if key != "sortOrder"}
