"""Every list, object and string of every request body has a maximum, which the OpenAPI document states."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from flagadmin.core.http.request_bodies import limit_at
from tests.flagadmin.security.sending import bodies, described_api

# These are bounded as a whole: in bytes and in entries.
IMPORTS = tuple(f"/api/admin/features-batch/{name}" for name in ("import", "validate", "compare"))
IMPORTS += ("/api/admin/flags-as-code/plan", "/api/admin/flags-as-code/apply")


@pytest.fixture(scope="module")
def document() -> Any:
    return described_api()


def unbounded(document: Any, schema: Any, place: str = "body") -> Iterator[str]:
    """The places of a schema that take as much as anybody sends."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for kind in ("oneOf", "anyOf", "allOf"):
        for one in schema.get(kind, ()):
            yield from unbounded(document, one, place)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if "string" in types and not schema.keys() & {"maxLength", "enum", "const", "format"}:
        yield place
    if "array" in types:
        if "maxItems" not in schema:
            yield f"{place}[]"
        yield from unbounded(document, schema["items"], f"{place}[]")
    if isinstance(members := schema.get("additionalProperties"), dict) and members:
        if "maxProperties" not in schema:
            yield f"{place}.*"
        yield from unbounded(document, members, f"{place}.*")
    for name, inner in schema.get("properties", {}).items():
        yield from unbounded(document, inner, f"{place}.{name}")


def test_every_place_of_every_body_has_a_maximum(document: Any) -> None:
    found = {
        f"{name}: {place}"
        for name, schema in bodies(document)
        if not name.endswith(IMPORTS)
        for place in unbounded(document, schema)
    }
    assert found == set()


TYPICAL_STRING = 20  # characters


def resolved(document: Any, schema: Any) -> Any:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def typical_bytes(document: Any, schema: Any) -> int:
    """Of a value that has only what it must have."""
    schema = resolved(document, schema)
    for kind in ("oneOf", "anyOf", "allOf"):
        if kind in schema:
            return max(typical_bytes(document, each) for each in schema[kind])
    if schema.get("type") == "string":
        return 2 + min(schema.get("maxLength", TYPICAL_STRING), TYPICAL_STRING)
    members = schema.get("properties", {})
    required = [(name, members[name]) for name in schema.get("required", ()) if name in members]
    return 5 + sum(len(name) + 4 + typical_bytes(document, member) for name, member in required)


def lists(document: Any, schema: Any, place: str = "body") -> Iterator[tuple[str, int]]:
    """The places of lists, and how many bytes their typical items take if there are as many as may be."""
    schema = resolved(document, schema)
    for kind in ("oneOf", "anyOf", "allOf"):
        for each in schema.get(kind, ()):
            yield from lists(document, each, place)
    if "items" in schema and len(place) < 200:  # some refer to themselves
        yield place, schema.get("maxItems", 0) * (1 + typical_bytes(document, schema["items"]))
        yield from lists(document, schema["items"], f"{place}[]")
    for name, inner in schema.get("properties", {}).items():
        if len(place) < 200:
            yield from lists(document, inner, f"{place}.{name}")


def test_bodies_may_be_as_large_as_the_lists_that_they_may_have(document: Any) -> None:
    found = {
        f"{name}: {place} of {size:,} bytes"
        for name, schema in bodies(document)
        for place, size in lists(document, schema)
        if size > limit_at(re.sub(r"[{}]", "", name.split(" ")[-1]))
    }
    assert found == set()
