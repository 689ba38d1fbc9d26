"""Every place of every valid body, and every parameter, with odd values: a record, and never a fault of the server."""

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from drf_spectacular.generators import SchemaGenerator

from projects.models import Dependency, Environment
from tests.flagadmin.security.routes import Route, routes
from tests.flagadmin.security.valid_bodies import VALID, valid_body
from tests.flagadmin.security.world import address, build
from tests.support.cast import client, make_token

pytestmark = pytest.mark.exhaustive

DEEP: Any = "x"
for _ in range(100):
    DEEP = [DEEP]
# What no view sees: tried in one place of each body.
NO_JSON: dict[str, Any] = {
    "NaN": float("nan"), "huge": 10**400, "NUL": "a\0b", "surrogate": "\ud800", "deep": DEEP,
}  # fmt: skip
ODD: dict[str, Any] = {
    "null": None, "true": True, "minus": -1, "fraction": 1.5, "large": 10**30, "empty": "", "long": "x" * 20_000,
    "odd": "é😀\u202e{}%s'\"/..", "date": "9999-12-31T23:59:59-12:00", "nulls": [None], "lists": [[], {}], "object": {},
}  # fmt: skip
MISSING = object()
# Valid, but the cast has no password to name.
REFUSED = {"post /api/admin/user/change-password"}
ROUTES = [route for prefix in ("api/", "edge/") for route in routes(prefix)]


def known_routes() -> dict[str, Route]:
    return {f"{method} {route}": route for route in ROUTES for method in route.methods}


def places(value: Any, path: tuple = ()) -> Iterator[tuple]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def replaced(body: Any, path: tuple, odd: Any) -> Any:
    if not path:
        return odd
    body = copy.deepcopy(body)
    holder = body
    for key in path[:-1]:
        holder = holder[key]
    if odd is MISSING:
        del holder[path[-1]]
    else:
        holder[path[-1]] = odd
    return body


def variations(body: Any) -> Iterator[tuple[str, Any]]:
    for name, odd in NO_JSON.items():
        yield name, replaced(body, next(path for path in places(body) if path), odd)
    for path in places(body):
        for name, odd in ODD.items():
            yield f"{path} {name}", replaced(body, path, odd)
        if path:
            yield f"{path} missing", replaced(body, path, MISSING)


def is_sound(response: Any) -> bool:
    """Accepted, or refused with a record."""
    if response.status_code < 400:
        return True
    record = json.loads(response.content)
    return response.status_code < 500 and {"id", "name", "message"} <= record.keys()


@pytest.fixture
def world(shop: Any) -> Any:
    made = build(shop)
    Environment.objects.create(name="staging", type="test")
    Dependency.objects.all().delete()  # it would stand against a move
    return made


def caller(operation: str, api: Any) -> Any:
    if " /api/client/" in operation:
        return client(make_token("backend", environment="production"))
    if " /api/frontend" in operation:
        return client(make_token("frontend", environment="production"))
    return api["admin"]


def send(who: Any, operation: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body)
    with transaction.atomic():
        method = getattr(who, operation.partition(" ")[0])
        response = method(path, data, content_type="application/json") if data is not None else method(path)
        transaction.set_rollback(True)
    return response


def test_every_operation_with_a_body_has_a_valid_one() -> None:
    document: Any = SchemaGenerator().get_schema(request=None, public=True)
    described = {
        re.sub(r"\{\w+\}", "{}", f"{method} {path}")
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if "requestBody" in operation
    }
    assert {re.sub(r"<[\w:]+>", "{}", operation) for operation in VALID} == described
    assert VALID.keys() <= known_routes().keys()


@pytest.mark.parametrize("operation", VALID)
def test_every_place_of_a_valid_body(operation: str, world: Any, api: Any) -> None:
    who, path = caller(operation, api), address(known_routes()[operation], world)
    body = valid_body(operation, world)
    accepted = send(who, operation, path, body)
    assert accepted.status_code < 300 or operation in REFUSED, accepted.content
    found = {}
    for name, odd in variations(body):
        response = send(who, operation, path, odd)
        if not is_sound(response):
            found[name] = (response.status_code, response.content[:300])
    assert found == {}
