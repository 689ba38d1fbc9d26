"""Odd values in every part of every request body and parameter get an error record, never a server error."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.flagadmin.security.batches import in_batches, undone
from tests.flagadmin.security.sending import (
    MISSING,
    caller,
    described_api,
    is_sound,
    known_routes,
    replaced,
    send,
)
from tests.flagadmin.security.valid_bodies import VALID, valid_body
from tests.flagadmin.security.world import address
from tests.support.examples import examples, spread

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
    "missing": MISSING,
}  # fmt: skip
# Valid, but the cast has no password to name, nobody has a link, and no email is sent.
REFUSED = {
    "post /api/admin/user/change-password",
    "post /auth/reset/password",
    "post /auth/reset/password-email",
    "post /auth/simple/login",
    # Nothing has changed since.
    "post /api/admin/environments/<str:name>/revert",
    # The flag has a plan.
    "post /api/admin/projects/<str:project_id>/features/<str:name>/environments/<str:environment>/release-plans",
}


def places(value: Any, path: tuple = ()) -> Iterator[tuple]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def variations(body: Any) -> Iterator[tuple[str, Any]]:
    for name, odd in NO_JSON.items():
        yield name, replaced(body, next(path for path in places(body) if path), odd)
    every = [
        (path, name, odd) for path in places(body) for name, odd in ODD.items() if path or odd is not MISSING
    ]
    for path, name, odd in spread(every, examples(160), period=len(ODD)):
        yield f"{path} {name}", replaced(body, path, odd)


def test_every_operation_with_a_json_body_has_a_valid_one() -> None:
    described = {
        re.sub(r"\{\w+\}", "{}", f"{method} {path}")
        for path, item in described_api()["paths"].items()
        for method, operation in item.items()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    }
    assert {re.sub(r"<[\w:]+>", "{}", operation) for operation in VALID} == described
    assert VALID.keys() <= known_routes().keys()


@in_batches("operations", VALID)
def test_every_place_of_a_valid_body(operations: list[str], world: Any, api: Any) -> None:
    found = {}
    for operation in operations:
        with undone():
            who, path = caller(operation, api), address(known_routes()[operation], world)
            body = valid_body(operation, world)
            accepted = send(who, operation, path, body)
            assert accepted.status_code < 300 or operation in REFUSED, (operation, accepted.content)
            for name, odd in variations(body):
                response = send(who, operation, path, odd)
                if not is_sound(response):
                    found[operation, name] = (response.status_code, response.content[:300])
    assert found == {}
