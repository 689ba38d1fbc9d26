"""The operations of the OpenAPI document, each with its call as a curl command and in Python."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from flagadmin.console.api_docs.document import get_openapi_document
from flagadmin.core.db.lookups import split_words

KINDS = ("allOf", "oneOf", "anyOf")  # the ways in which a schema combines others


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as shown in a list."""

    id: str
    method: str
    path: str
    subject: str
    summary: str
    is_deprecated: bool

    def has(self, words: Sequence[str]) -> bool:
        text = f"{self.summary} {self.method} {self.path} {self.id} {self.subject}".casefold()
        return all(word.casefold() in text for word in words)


def read_document() -> dict[str, Any]:
    """Parses the document anew, in some 20 ms: as objects, it would take ten times the memory of its bytes."""
    document: dict[str, Any] = orjson.loads(get_openapi_document().body)
    return document


@cache
def list_operations() -> tuple[Operation, ...]:
    """Lists the operations by subject, in the order of the document; deprecated ones last in their subject."""
    document = read_document()
    order = [tag["name"] for tag in document["tags"]]
    operations = [
        Operation(
            id=described["operationId"],
            method=method.upper(),
            path=path,
            subject=described["tags"][0],
            summary=described["summary"],
            is_deprecated=described.get("deprecated", False),
        )
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    ]
    operations.sort(key=lambda operation: (order.index(operation.subject), operation.is_deprecated))
    return tuple(operations)


def find_operation(operation_id: str) -> Operation | None:
    return next((operation for operation in list_operations() if operation.id == operation_id), None)


def group_by_subject(text: str) -> list[tuple[str, list[Operation]]]:
    """The operations that contain every word of the text, by subject."""
    words = split_words(text)
    matches = (operation for operation in list_operations() if operation.has(words))
    return [
        (subject, list(operations))
        for subject, operations in groupby(matches, lambda operation: operation.subject)
    ]


def resolve(document: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The schema that a reference points to, and its name; "" for an inline schema."""
    name = ""
    while reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        schema = document["components"]["schemas"][name]
    return schema, name


def list_alternatives(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields the alternative schemas, without null."""
    for kind in KINDS:
        yield from (alternative for alternative in schema.get(kind, ()) if alternative.get("type") != "null")


# Values for the parameters of a path.
PATH_VALUES = {
    "projectId": "default",
    "environment": "production",
    "featureName": "new-checkout",
    "name": "new-checkout",
    "key": "new-checkout",
    "parent": "checkout",
    "tagType": "simple",
    "value": "new-checkout",
    "typeId": "release",
}
_NAMES_OF = (
    ("/context/", "country"),
    ("/environments/", "production"),
    ("/metrics/applications/", "web-shop"),
    ("/metrics/instances/", "web-shop"),
    ("/tag-types/", "simple"),
    ("/strategies/", "flexibleRollout"),
)  # in a path with this prefix, directly after /api/admin, the name belongs to something other than a flag


@dataclass(frozen=True, slots=True)
class Call:
    """``body`` has the bytes of a file if ``media`` is not JSON; ``header`` sends the token, "" without one."""

    method: str
    url: str
    media: str = ""
    body: Any = None
    header: str = "Authorization"


def make_path_value(path: str, name: str) -> str:
    if name == "name":
        values = (value for beginning, value in _NAMES_OF if path.startswith("/api/admin" + beginning))
        return next(values, PATH_VALUES[name])
    return PATH_VALUES.get(name, "1")


def fill_path(path: str, parameters: Iterable[Mapping[str, Any]]) -> str:
    """The path with an example for each required parameter."""
    required = [parameter for parameter in parameters if parameter.get("required")]
    query = {each["name"]: make_path_value(path, each["name"]) for each in required if each["in"] == "query"}
    filled = path
    for parameter in required:
        if parameter["in"] == "path":
            value = quote(make_path_value(path, parameter["name"]), safe="")
            filled = filled.replace(f"{{{parameter['name']}}}", value)
    return filled + (f"?{urlencode(query)}" if query else "")


def as_curl(call: Call) -> str:
    """The call as a curl command on several lines, quoted for a shell. It reads the token from the variable TOKEN."""
    lines = ["curl" if call.method == ("POST" if call.media else "GET") else f"curl -X {call.method}"]
    if call.header:
        lines.append(f'-H "{call.header}: $TOKEN"')
    if call.media:
        lines.append(f"-H 'Content-Type: {call.media}'")
    lines.append(shlex.quote(call.url))
    if call.media:
        lines.append(
            "--data-binary @users.csv" if call.body is None else f"-d {shlex.quote(as_json(call.body))}"
        )
    return " \\\n  ".join(lines)


def as_json(body: Any) -> str:
    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()


def as_python(call: Call) -> str:
    """The call in Python with the standard library alone. It reads the token from the environment variable TOKEN."""
    headers = [f'"{call.header}": os.environ["TOKEN"]'] if call.header else []
    headers += [f'"Content-Type": "{call.media}"'] if call.media else []
    imports = [*(["json"] if call.media and call.body is not None else []), *(["os"] if call.header else [])]
    lines = [f"import {', '.join([*imports, 'urllib.request'])}", ""]
    data = ""
    if call.media and call.body is None:
        data = '    data=open("users.csv", "rb").read(),'
    elif call.media:
        lines.append(f"body = {_format_python(call.body)}")
        data = "    data=json.dumps(body).encode(),"
    lines += ["request = urllib.request.Request(", f'    "{call.url}",', f'    method="{call.method}",']
    lines += [data] if data else []
    lines += [f"    headers={{{', '.join(headers)}}},"] if headers else []
    return "\n".join([*lines, ")", "print(urllib.request.urlopen(request).read().decode())"])


def _format_python(value: Any, indent: str = "") -> str:
    """A JSON value in Python's syntax, one member per line."""
    deeper = indent + "    "
    if isinstance(value, dict) and value:
        members = (
            f"{deeper}{as_json(key)}: {_format_python(member, deeper)},\n" for key, member in value.items()
        )
        return "{\n" + "".join(members) + indent + "}"
    if isinstance(value, list) and value:
        return (
            "[\n" + "".join(f"{deeper}{_format_python(member, deeper)},\n" for member in value) + indent + "]"
        )
    return as_json(value) if isinstance(value, str) else repr(value)
