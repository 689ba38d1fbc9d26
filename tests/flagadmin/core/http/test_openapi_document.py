"""The OpenAPI document is generated once per process, and sent again only if it has changed."""

import gzip
from collections.abc import Iterator
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

from flagadmin.console.api_docs import operations as description
from flagadmin.console.apps import prepare_openapi_document
from flagadmin.core.server import loop_routes
from tests.support.cast import client
from tests.support.description import description as describe_api
from tests.support.event_loop import run

ADDRESS = "/api/openapi.json"


def test_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    build = SchemaGenerator.get_schema

    def count_and_build(*args, **kwargs):
        built.append(1)
        return build(*args, **kwargs)

    monkeypatch.setattr(SchemaGenerator, "get_schema", count_and_build)
    description._make_openapi_document.cache_clear()
    answers = [client().get(ADDRESS) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {200}
    assert answers[0].json()["info"]["title"] == "flagadmin"
    assert len(built) == 1


def test_whatever_may_be_null_is_so_by_one_schema_alone() -> None:
    """ "Anything" includes null, so that `oneOf` of it and null would exclude null."""

    def find_choices(part: Any) -> Iterator[list[Any]]:
        if isinstance(part, dict):
            yield part.get("oneOf", [])
        for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            yield from find_choices(inner)

    assert [choices for choices in find_choices(client().get(ADDRESS).json()) if {} in choices] == []


def test_descriptions_are_markdown_and_not_what_classes_inherit() -> None:
    document = client().get(ADDRESS).json()
    schemas = document["components"]["schemas"]
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    described = [each.get("description", "") for each in (*schemas.values(), *operations)]
    assert [
        text for text in described if "``" in text or text.startswith("An object in a request body")
    ] == []


def test_examples_and_defaults_are_what_their_schemas_allow() -> None:
    described, misfits = describe_api(), []

    def visit(part: Any, path: str) -> None:
        if isinstance(part, list):
            for index, inner in enumerate(part):
                visit(inner, f"{path}/{index}")
        if not isinstance(part, dict):
            return
        if "default" in part and not path.endswith("/properties"):
            schema = {key: value for key, value in part.items() if key != "default"}
            misfits.extend(f"{path}: {fault}" for fault in described.faults(schema, part["default"]))
        if "schema" in part and "examples" in part:
            for name, example in part["examples"].items():
                found = described.faults(part["schema"], example["value"])
                misfits.extend(f"{path} {name}: {fault}" for fault in found)
        for key, inner in part.items():
            visit(inner, f"{path}/{key}")

    visit(described.document, "")
    assert misfits == []


def test_is_prepared_by_each_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    assert prepare_openapi_document in loop_routes.tasks
    monkeypatch.setattr(description, "PREPARE_AFTER", 0)
    description._make_openapi_document.cache_clear()
    run(prepare_openapi_document)
    assert description._make_openapi_document.cache_info().currsize == 1


def test_is_not_sent_to_whoever_has_it() -> None:
    etag = client().get(ADDRESS).headers["ETag"]
    again = client().get(ADDRESS, headers={"If-None-Match": etag})
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", etag)
    assert client().get(ADDRESS, headers={"If-None-Match": '"another"'}).status_code == 200


def test_is_compressed_for_clients_that_accept_it() -> None:
    plain, packed = client().get(ADDRESS), client().get(ADDRESS, headers={"Accept-Encoding": "gzip, br"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content
    assert len(packed.content) * 10 < len(plain.content)
    assert plain.headers["Vary"] == packed.headers["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize("address", [ADDRESS, "/api/docs/"])
def test_another_method_is_refused_with_a_record(db: None, address: str) -> None:
    answer = client().post(address)
    assert (answer.status_code, answer.json()["name"]) == (405, "MethodNotAllowedError")
    assert "GET" in answer.headers["Allow"]
