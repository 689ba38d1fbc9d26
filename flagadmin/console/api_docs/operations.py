"""The operations of the OpenAPI document, as the pages list and show them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

import orjson

from flagadmin.console.api_docs.document import get_openapi_document
from flagadmin.core.db.matching import split_words

KINDS = ("allOf", "oneOf", "anyOf")  # how a schema says that it is any of several


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as a list shows it."""

    id: str
    method: str
    path: str
    subject: str
    summary: str
    is_deprecated: bool

    def has(self, words: Sequence[str]) -> bool:
        text = f"{self.summary} {self.method} {self.path} {self.id} {self.subject}".casefold()
        return all(word.casefold() in text for word in words)


def read_document() -> dict[str, Any]:
    """Parsed anew, in some 20 ms: kept as objects, it would take ten times the memory of its bytes."""
    document: dict[str, Any] = orjson.loads(get_openapi_document().body)
    return document


@cache
def list_operations() -> tuple[Operation, ...]:
    """Lists the operations by subject, in the order of the document; deprecated ones last in their subject."""
    document = read_document()
    order = [tag["name"] for tag in document["tags"]]
    operations = [
        Operation(
            id=described["operationId"],
            method=method.upper(),
            path=path,
            subject=described["tags"][0],
            summary=described["summary"],
            is_deprecated=described.get("deprecated", False),
        )
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    ]
    operations.sort(key=lambda operation: (order.index(operation.subject), operation.is_deprecated))
    return tuple(operations)


def find_operation(operation_id: str) -> Operation | None:
    return next((operation for operation in list_operations() if operation.id == operation_id), None)


def group_by_subject(text: str) -> list[tuple[str, list[Operation]]]:
    """The operations that have every word of the text, by subject."""
    words = split_words(text)
    matches = (operation for operation in list_operations() if operation.has(words))
    return [
        (subject, list(operations))
        for subject, operations in groupby(matches, lambda operation: operation.subject)
    ]


def resolve(document: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The schema that a reference leads to, and its name; "" for one that stands in place."""
    name = ""
    while reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        schema = document["components"]["schemas"][name]
    return schema, name


def list_alternatives(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields the schemas of which any one holds; null is left out."""
    for kind in KINDS:
        yield from (alternative for alternative in schema.get(kind, ()) if alternative.get("type") != "null")
