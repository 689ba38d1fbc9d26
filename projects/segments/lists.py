"""The list of a segment: the values of its first constraint, if that is IN. Reads lists from files and compares them.

SDKs know a list as the constraint that it is. Only its limit differs from that of typed values.

Documents of segments for the audit log: versions keep whole lists, an event has the first values of long
ones.
"""

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from typing import Any

from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.errors import MAX_DETAILS, Problem, ValidationError, check_problems, choices
from playground.engine.definitions import ConstraintDefinition
from projects.rules import Limits

OPERATOR = "IN"
DEFAULT_FIELD = "userId"
BODY_LIMIT = 16_000_000  # bytes
SHOWN = 10
"""Values of a difference that are named."""
MODES = ("replace", "add", "remove")
DELIMITERS = ",;\t"
EMPTY = "a list needs at least one value: an empty one would match nobody"
HEAVY = 5_000
"""Values above which the page and the API warn of the weight."""


def find_list(constraints: Sequence[ConstraintDefinition]) -> Sequence[str]:
    """The values of the list; empty if the segment has none."""
    return constraints[0]["values"] if may_be_list(constraints) and constraints else ()


def may_be_list(constraints: Sequence[ConstraintDefinition]) -> bool:
    return not constraints or constraints[0]["operator"] == OPERATOR


@dataclass(frozen=True, slots=True)
class SentList:
    """Values in their order, each once. ``field`` is the context field if the sender names one."""

    values: Sequence[str]
    field: str = ""


def decode(content: bytes) -> str:
    """Text in UTF-8, with or without a byte order mark. Raises ValidationError."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValidationError.at("file", f"must be text in UTF-8; byte {error.start:,} is not") from error


def read_lines(text: str, limits: Limits) -> SentList:
    """Reads one value per line; skips empty lines. Raises ValidationError with the lines of the problems."""
    lines = enumerate(StringIO(text, newline=None), 1)
    return SentList(_take(((f"line {number}", line) for number, line in lines), limits))


def read_csv(text: str, limits: Limits, *, column: str = "", field: str = DEFAULT_FIELD) -> SentList:
    """Reads a column of a CSV file with a header: ``column``, or the only one, or the one named as ``field``.

    Commas, semicolons or tabs separate the columns. Raises ValidationError with the rows of the problems.
    """
    first = text.partition("\n")[0]
    rows = csv.reader(StringIO(text, newline=""), delimiter=max(DELIMITERS, key=first.count), strict=True)
    try:
        header = [name.strip() for name in next(rows, ())]
        position = _find_column(header, column, field)
        cells = (
            (f"row {rows.line_num}", row[position] if position < len(row) else "") for row in rows if row
        )
        return SentList(_take(cells, limits), header[position])
    except csv.Error as error:
        raise ValidationError.at(f"row {rows.line_num}", f"is not valid CSV: {error}") from error


def _find_column(header: Sequence[str], column: str, field: str) -> int:
    if not any(header):
        raise ValidationError.at("row 1", "must name the columns")
    wanted = column or (header[0] if len(header) == 1 else field)
    if wanted not in header:
        problem = f"the file has no column {wanted[:100]}" if column else "name the column with the values"
        raise ValidationError.at("column", f"{problem}. Available: {choices(filter(None, header))}")
    return header.index(wanted)


def read_values(values: Iterable[str], limits: Limits, path: str = "values") -> SentList:
    """Raises ValidationError with the positions of the problems."""
    return SentList(_take(((f"{path}[{index}]", value) for index, value in enumerate(values)), limits))


def _take(placed: Iterable[tuple[str, str]], limits: Limits) -> list[str]:
    """Strips the values, skips empty ones and those that came before. Stops at the limits."""
    values: dict[str, None] = {}
    problems: list[Problem] = []
    for place, text in placed:
        value = text.strip()
        problems += _value_problems(value, place, limits)
        if value:
            values[value] = None
        if len(values) > limits.segment_list:
            raise ValidationError.at(place, f"a list must have at most {limits.segment_list:,} values")
        if len(problems) >= MAX_DETAILS:
            break
    check_problems(problems)
    return list(values)


def _value_problems(value: str, place: str, limits: Limits) -> Iterator[Problem]:
    if len(value) > limits.value_length:
        yield Problem(place, f"must have at most {limits.value_length} characters, not {len(value):,}")
    elif "\0" in value:
        yield Problem(place, "must not contain a NUL character")
    elif value.endswith("\\"):
        yield Problem(place, "must not end in a backslash, which SDKs cannot read")


def combine(stored: Sequence[str], sent: Sequence[str], mode: str) -> Sequence[str]:
    """The list after replacing it, adding to it or removing from it. Keeps the stored one if it has the same values."""
    if mode == "replace":
        return stored if set(stored) == set(sent) else sent
    if mode == "add":
        return [*stored, *_without(sent, stored)]
    return _without(stored, sent)


def _without(values: Iterable[str], others: Collection[str]) -> list[str]:
    excluded = frozenset(others)
    return [value for value in values if value not in excluded]


@dataclass(frozen=True, slots=True)
class Difference:
    """What a change adds to a list and removes from it: the numbers, and the first values."""

    added: int
    removed: int
    first_added: Sequence[str]
    first_removed: Sequence[str]

    @classmethod
    def of(cls, before: Sequence[str], after: Sequence[str]) -> "Difference":
        added, removed = _without(after, before), _without(before, after)
        return cls(len(added), len(removed), list(islice(added, SHOWN)), list(islice(removed, SHOWN)))

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    def document(self) -> dict[str, Any]:
        return {
            "added": self.added,
            "removed": self.removed,
            "firstAdded": self.first_added,
            "firstRemoved": self.first_removed,
        }


def describe_difference(document: Mapping[str, Any]) -> str:
    """``+ 20 (a, b and 18 more), − 1 (c)``."""
    sides = [
        (sign, document[count], document[first])
        for sign, count, first in (("+", "added", "firstAdded"), ("−", "removed", "firstRemoved"))
    ]
    return ", ".join(
        f"{sign} {count:,} ({_name_first(first, count)})" for sign, count, first in sides if count
    )


def _name_first(first: Sequence[str], count: int) -> str:
    more = count - len(first)
    return f"{', '.join(first)} and {more:,} more" if more else ", ".join(first)


def pluralize_values(count: int) -> str:
    return f"{count:,} value{'' if count == 1 else 's'}"


MAX_VALUES = 1_000
"""Values of a constraint that an event has in full."""
COUNT, HASH, CHANGE = "valuesCount", "valuesHash", "listChange"


def cut_lists(document: Mapping[str, Any]) -> Document:
    """Replaces long lists by their first values, their number and a fingerprint."""
    constraints = document.get("constraints")
    if not isinstance(constraints, list):
        return dict(document)
    return {**document, "constraints": [_cut(constraint) for constraint in constraints]}


def _cut(constraint: Any) -> Any:
    values = constraint.get("values") or ()
    if len(values) <= MAX_VALUES:
        return constraint
    return {**constraint, "values": values[:SHOWN], COUNT: len(values), HASH: hash_document(values)}


def is_cut(document: Mapping[str, Any]) -> bool:
    return any(COUNT in constraint for constraint in document["constraints"])


def change_documents(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Document, Document]:
    """The documents of a change. If a list is long, the one after the change names what was added and removed."""
    cut_before, cut_after = cut_lists(before), cut_lists(after)
    if is_cut(cut_before) or is_cut(cut_after):
        difference = Difference.of(find_list(before["constraints"]), find_list(after["constraints"]))
        if difference:
            cut_after[CHANGE] = difference.document()
    return cut_before, cut_after


def read_list_size(document: Mapping[str, Any]) -> int:
    """The number of values in the list of a document of an event."""
    first: dict[str, Any] = next(iter(document["constraints"]), {"values": ()})
    return int(first.get(COUNT, len(first["values"])))


def drop_list(document: Mapping[str, Any]) -> Document:
    """The document of an event without its list and the difference."""
    first, *others = document["constraints"] or [{}]
    kept = {key: value for key, value in first.items() if key not in ("values", COUNT, HASH)}
    return {**drop_change(document), "constraints": [kept, *others]}


def drop_change(document: Mapping[str, Any]) -> Document:
    return {key: value for key, value in document.items() if key != CHANGE}
