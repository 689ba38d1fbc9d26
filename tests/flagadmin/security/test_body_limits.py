"""Every list, object and string of every request body has a maximum, which the OpenAPI document states."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.flagadmin.security.sending import bodies, described_api

# These are bounded as a whole: in bytes and in entries.
IMPORTS = tuple(f"/api/admin/features-batch/{name}" for name in ("import", "validate", "compare"))


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
