"""What OFREP answers is what the OpenAPI document says, and what the protocol says."""

from typing import Any

import pytest

from tests.support.cast import client, make_token
from tests.support.description import Description, check, examples, faults
from tests.support.description import description as described_api
from tests.support.ofrep import FLAGS
from tests.support.openfeature import USER, make_flags

pytestmark = pytest.mark.django_db
ONE = f"{FLAGS}/{{key}}"
OPERATIONS = (("post", FLAGS), ("post", ONE), ("get", "/ofrep/v1/events"))

# open-feature/protocol, service/openapi.yaml, version 0.3.
METADATA = {"type": "object", "additionalProperties": {"type": ["boolean", "string", "number"]}}
TEXT = {"type": "string"}
SUCCESS = {
    "type": "object",
    "properties": {"key": TEXT, "reason": TEXT, "variant": TEXT, "metadata": METADATA},
    "required": ["key", "reason", "variant", "metadata"],
    "not": {"required": ["errorCode"]},
}
FAILURE = {
    "type": "object",
    "properties": {
        "key": TEXT,
        "errorCode": {"enum": ["PARSE_ERROR", "TARGETING_KEY_MISSING", "INVALID_CONTEXT", "GENERAL"]},
        "errorDetails": TEXT,
    },
    "required": ["key", "errorCode"],
}
STREAM = {
    "type": "object",
    "properties": {
        "type": TEXT,
        "endpoint": {
            "type": "object",
            "properties": {"origin": TEXT, "requestUri": TEXT},
            "required": ["requestUri"],
        },
    },
    "required": ["type", "endpoint"],
    "not": {"required": ["url"]},
}
BULK = {
    "type": "object",
    "properties": {
        "flags": {"type": "array", "items": {"oneOf": [SUCCESS, FAILURE]}},
        "eventStreams": {"type": "array", "items": STREAM},
    },
    "required": ["flags"],
}


@pytest.fixture(scope="module")
def description() -> Description:
    return described_api()


@pytest.fixture
def server(db: None) -> Any:
    make_flags()
    return client(make_token("backend", projects=["default"], environment="development"))


@pytest.mark.parametrize("given", [{}, USER])
def test_a_bulk_answer_matches_the_document(server: Any, description: Description, given: Any) -> None:
    answer = server.post(FLAGS, {"context": given})
    assert description.faults(description.answer("post", FLAGS, 200), answer.json()) == []
    assert faults(BULK, answer.json()) == []
    again = server.post(FLAGS, {"context": given}, headers={"If-None-Match": answer["ETag"]})
    check(description, "post", FLAGS, again)


@pytest.mark.parametrize("key", ["on", "off", "color", "no-color", "ratio", "layout", "half"])
def test_a_single_answer_matches_the_document(server: Any, description: Description, key: str) -> None:
    answer = server.post(f"{FLAGS}/{key}", {"context": USER})
    check(description, "post", ONE, answer)
    assert answer.status_code == 200
    assert faults(SUCCESS, answer.json()) == []


@pytest.mark.parametrize(("key", "status"), [("by-user", 400), ("missing", 404)])
def test_failures_match_the_document(server: Any, description: Description, key: str, status: int) -> None:
    answer = server.post(f"{FLAGS}/{key}", {})
    check(description, "post", ONE, answer)
    assert answer.status_code == status
    for who, refused in ((client(), 401), (client(make_token("admin")), 403)):
        answer = who.post(f"{FLAGS}/{key}", {})
        check(description, "post", ONE, answer)
        assert answer.status_code == refused


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_examples_of_the_document_match_it(
    method: str, path: str, description: Description, server: Any
) -> None:
    operation = description.operation(method, path)
    for schema, value in examples(operation.get("requestBody", {})):
        assert description.faults(schema, value) == []
        assert server.post(path.format(key="on"), value).status_code == 200
    for answer in operation["responses"].values():
        for schema, value in examples(answer):
            assert description.faults(schema, value) == []
            assert set(description.untold(schema, value)) == set()
