"""Request bodies accept values of related JSON types, converted to the documented type.

The rules are in docs/decisions/types-of-request-bodies.md.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.flagadmin.security.batches import in_batches, undone
from tests.flagadmin.security.sending import bodies, caller, described_api, known_routes, replaced, send
from tests.flagadmin.security.valid_bodies import VALID, valid_body
from tests.flagadmin.security.world import address
from tests.support.examples import examples, spread

pytestmark = pytest.mark.exhaustive

# (as described, as sent besides), by the type in the description.
PAIRS: dict[str, tuple[tuple[Any, Any], ...]] = {
    "integer": ((7, "7"),),
    "number": ((7, "7"),),
    "string": (("7", 7),),
    "boolean": ((True, "true"), (True, 1), (False, "false"), (False, 0)),
}


@pytest.fixture(scope="module")
def document() -> Any:
    return described_api()


def schema_of(document: Any, operation: str) -> Any:
    route = known_routes()[operation]
    return next(
        schema
        for name, schema in bodies(document)
        if shape(name) == shape(f"{operation.partition(' ')[0]} {route}")
    )


def shape(operation: str) -> str:
    """The operation without the names of its placeholders, which the description writes in its own way."""
    return "/".join("{}" if part[:1] in "{<" else part for part in operation.split("/"))


def typed_places(document: Any, schema: Any, value: Any, path: tuple = ()) -> Iterator[tuple[tuple, str]]:
    """Places of a body whose description names one type, with that type (null is none)."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    schemas = [one for kind in ("allOf", "oneOf", "anyOf") for one in schema.get(kind, ())]
    schemas = [one for one in schemas if one.get("type") != "null"]
    if len(schemas) == 1:
        yield from typed_places(document, schemas[0], value, path)
    types = schema.get("type", [])
    types = {types} if isinstance(types, str) else set(types)
    found = types - {"null"}
    if isinstance(value, dict):
        for name, inner in value.items():
            below = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if isinstance(below, dict):
                yield from typed_places(document, below, inner, (*path, name))
    elif isinstance(value, list) and "items" in schema:
        for inner in value[:1]:
            yield from typed_places(document, schema["items"], inner, (*path, 0))
    elif len(found) == 1 and (kind := found.pop()) in PAIRS:
        yield path, kind


def judged(response: Any) -> Any:
    """The status, and the places of what is wrong; messages quote the value as it was sent."""
    if response.status_code < 400:
        return response.status_code
    record = json.loads(response.content)
    return response.status_code, [detail.get("path") for detail in record.get("details") or ()]


@in_batches("operations", VALID)
def test_neighboring_types(operations: list[str], document: Any, world: Any, api: Any) -> None:
    different = {}
    for operation in operations:
        with undone():
            who, path = caller(operation, api), address(known_routes()[operation], world)
            body = valid_body(operation, world)
            every = list(typed_places(document, schema_of(document, operation), body))
            for place, kind in spread(every, examples(40)):
                for described, besides in PAIRS[kind]:
                    expected = judged(send(who, operation, path, replaced(body, place, described)))
                    found = judged(send(who, operation, path, replaced(body, place, besides)))
                    if found != expected:
                        different[f"{operation} {place} {besides!r}"] = (expected, found)
    assert different == {}, "\n".join(map(repr, different.items()))


def test_the_places_are_found(document: Any) -> None:
    operation = next(name for name in VALID if name.endswith("/changeProject"))
    schema = schema_of(document, operation)
    assert list(typed_places(document, schema, VALID[operation])) == [(("newProjectId",), "string")]
