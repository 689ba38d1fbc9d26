"""Reads what the OpenAPI document says about operations from Markdown files beside their APIs."""

import re
from pathlib import Path
from typing import Any

import orjson

_HEADING = re.compile(r"^## (.+)\n+", re.MULTILINE)
_JSON = re.compile(r"```json\n(.*)```\n*", re.DOTALL)


def read_sections(api: str, **values: object) -> dict[str, Any]:
    """The sections of the file ``operations.md`` beside the module ``api`` (its ``__file__``), by their headings.

    A section that is one block of JSON is parsed, an example for instance; any other is text, in which ``values``
    replace names in braces.
    """
    _, *parts = _HEADING.split(Path(api).with_name("operations.md").read_text(encoding="utf-8"))
    return {
        heading: _read_section(body, values) for heading, body in zip(parts[::2], parts[1::2], strict=True)
    }


def _read_section(body: str, values: dict[str, object]) -> Any:
    if example := _JSON.fullmatch(body):
        return orjson.loads(example[1])
    for name, value in values.items():
        body = body.replace(f"{{{name}}}", str(value))
    return body.rstrip("\n") + "\n"
