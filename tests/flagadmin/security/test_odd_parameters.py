"""Odd strings in every query and path parameter never cause a server error."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.flagadmin.security.batches import in_batches, undone
from tests.flagadmin.security.routes import Route
from tests.flagadmin.security.sending import caller, described_api, is_sound, known_routes, send
from tests.flagadmin.security.world import address
from tests.support.examples import examples, spread

pytestmark = pytest.mark.exhaustive

TEXTS = (
    "", " ", "0", "-1", "1.5", "9" * 40, "2147483648", "9223372036854775808", "NaN", "null", "é😀", "x" * 3000, "a,b:c",
    "IS:", "IS_ANY_OF:", "IS:9999-12-31", "9999-12-31", "0001-01-01", "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59", "2026-02-30", "%", "'", "\\", "..", "\ud7ff\ufffe",
)  # fmt: skip
IN_PATHS = (" ", "-1", "9" * 40, "é😀", "x" * 3000, "%", "\\", "\ud7ff\ufffe")

PARTS = 4


def described_parameters() -> dict[str, list[str]]:
    """The parameters that its description names, of each operation that reads."""
    told = {}
    for path, item in described_api()["paths"].items():
        names = [p["name"] for p in item.get("get", {}).get("parameters", ()) if p["in"] == "query"]
        told[_plain(path.replace("{", "<").replace("}", ">"))] = names
    reading = [operation for operation in known_routes() if operation.startswith("get ")]
    named = {operation: told.get(_plain(str(known_routes()[operation]))) for operation in reading}
    return {operation: names for operation, names in named.items() if names}


def _plain(path: str) -> str:
    return "/".join("<>" if part.startswith("<") else part for part in path.split("/"))


@pytest.mark.parametrize("part", range(PARTS))
def test_every_parameter_of_a_query(part: int, world: Any, api: Any) -> None:
    found = {}
    described = [*described_parameters().items()]
    assert len(described) >= 30
    for operation, names in described[part::PARTS]:
        with undone():
            who, path = caller(operation, api), address(known_routes()[operation], world)
            for turn, name in enumerate(names, start=sum(map(ord, operation))):
                for text in spread(TEXTS, examples(52), turn=turn):
                    response = send(who, operation, f"{path}?{urlencode({name: text})}")
                    if not is_sound(response):
                        found[operation, name, text] = response.status_code
    assert found == {}


READS = [
    (operation, route)
    for operation, route in known_routes().items()
    if route.names and operation.split()[0] in ("get", "delete")
]


@in_batches("reads", READS, lambda read: read[0])
def test_every_part_of_an_address(reads: list[tuple[str, Route]], world: Any, api: Any) -> None:
    found = {}
    for operation, route in reads:
        with undone():
            who, whole = caller(operation, api), address(route, world)
            for path in odd_paths(whole, route):
                response = send(who, operation, path)
                if not is_sound(response):
                    found[operation, path] = response.status_code
    assert found == {}


def odd_paths(whole: str, route: Route) -> Iterator[str]:
    for index, part in enumerate(route.pattern.split("/"), start=1):
        for text in IN_PATHS if part.startswith("<") else ():
            parts = whole.split("/")
            parts[index] = quote(text, safe="")
            yield "/".join(parts)
