"""The OpenAPI document, to compare with what is answered."""

from collections.abc import Iterator
from typing import Any

from flagadmin.console.api_docs.operations import read_document


class Description:
    """The document, and what a JSON value has against one of its schemas."""

    def __init__(self, document: Any) -> None:
        self.document = document

    def operation(self, method: str, path: str) -> Any:
        return self.document["paths"][path][method]

    def answer(self, method: str, path: str, status: int) -> Any:
        """The schema of an answer, None for one without a body."""
        answer = self.operation(method, path)["responses"][str(status)]
        return answer["content"]["application/json"]["schema"] if "content" in answer else None

    def faults(self, schema: Any, value: Any) -> list[str]:
        return faults(schema | {"components": self.document["components"]}, value)

    def untold(self, schema: Any, value: Any, path: str = "$") -> Iterator[str]:
        """The members of a value that the schema says nothing of."""
        schema = next((one for one in schema.get("oneOf", ()) if "$ref" in one), schema)
        if "$ref" in schema:
            schema = self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        told = schema.get("properties", {})
        if isinstance(value, list):
            for item in value:
                yield from self.untold(schema.get("items", {}), item, path + "[]")
        elif isinstance(value, dict) and "additionalProperties" in schema:
            for item in value.values():
                yield from self.untold(schema["additionalProperties"], item, path + ".*")
        elif isinstance(value, dict) and told:
            for key, item in value.items():
                if key in told:
                    yield from self.untold(told[key], item, f"{path}.{key}")
                else:
                    yield f"{path}.{key}"


def faults(schema: Any, value: Any) -> list[str]:
    """What a JSON value has against a schema."""
    # Not at the top: importing it takes more than a second, in each worker of the test run.
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(schema)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def description() -> Description:
    return Description(read_document())


def check(description: Description, method: str, path: str, response: Any) -> None:
    schema = description.answer(method, path, response.status_code)
    if schema is None:
        assert response.content == b""
        return
    value = response.json()
    assert description.faults(schema, value) == []
    assert set(description.untold(schema, value)) == set()


def examples(content: Any) -> Iterator[tuple[Any, Any]]:
    for media in content.get("content", {}).values():
        yield from ((media["schema"], example["value"]) for example in media.get("examples", {}).values())
