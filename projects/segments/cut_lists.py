"""Documents of segments for the audit log: versions keep whole lists, an event has the first values of long ones."""

from collections.abc import Mapping
from typing import Any

from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import hash_document
from projects.segments.lists import SHOWN, Difference, find_list

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


def change_documents(before: Document, after: Document) -> tuple[Document, Document]:
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
