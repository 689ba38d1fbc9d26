"""The operations of the OpenAPI document, each with its call as a curl command and in Python.

The OpenAPI document, who may call its operations, and the response for unknown API paths.
"""

import asyncio
import gzip
import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import orjson
from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.plumbing import camelize_operation
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.core.db.lookups import split_words
from flagadmin.core.errors import AuthenticationRequired, NotFound
from flagadmin.core.http.logs import drop_secrets
from flagadmin.core.http.responses import make_json_response
from groups.authentication import ConsoleSessionAuthentication
from groups.roles.subjects import name_permission
from groups.viewsets import Permission, ViewSet
from projects.project_scope import InProjectViewSet, ScopedViewSet

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


@dataclass(frozen=True, slots=True)
class Callers:
    """``permissions``: any one of them is enough. If there are none, ``rule`` states the requirement."""

    tokens: Sequence[str]
    has_session: bool
    permissions: Sequence[Permission]
    rule: str

    @property
    def named_permissions(self) -> list[tuple[Permission, str]]:
        """The permissions, each with its name from the pages of roles."""
        return [(permission, name_permission(permission)) for permission in self.permissions]


def read_callers(generator: SchemaGenerator, document: dict[str, Any]) -> dict[str, Callers]:
    """Reads the callers of each operation that the generator has put into the document, by the operation's id."""
    callers = {}
    for path, _, method, view in generator._get_paths_and_endpoints():
        path, _ = camelize_operation(path, {"operationId": "unused"})
        if operation := document["paths"].get(path, {}).get(method.lower()):
            callers[operation["operationId"]] = find_callers(view, method)
    return callers


def find_callers(view: Any, method: str) -> Callers:
    return Callers(
        tokens=_find_tokens(view),
        has_session=ConsoleSessionAuthentication in view.authentication_classes,
        permissions=_find_permissions(view),
        rule=_find_rule(view, is_read=method in SAFE_METHODS),
    )


def _find_tokens(view: Any) -> Sequence[str]:
    return sorted(kind for permission_class in view.permission_classes for kind in permission_class.kinds)


def _find_permissions(view: Any) -> Sequence[Permission]:
    if not isinstance(view, ViewSet):
        return ()
    needed = view.needed_permissions
    if needed and isinstance(view, ScopedViewSet):
        needed = (*needed, view.permission_in_project)
    return tuple(dict.fromkeys(needed))


def _find_rule(view: Any, *, is_read: bool) -> str:
    if not view.permission_classes:
        return "No token is needed."
    if not isinstance(view, ViewSet):
        return "The token decides which projects and which environment."
    if not is_read:
        return "No permission of its own. What the request changes may need some: a 403 names them."
    named = "the project" if isinstance(view, InProjectViewSet) else "what it names"
    return f"Everyone who can read {named}."


class OpenApiView(APIView):
    """The OpenAPI document, compressed. Needs no token."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        document = get_openapi_document()
        response = get_conditional_response(request, etag=document.etag) or make_json_response(
            request, document
        )
        response.headers["ETag"], response.headers["Cache-Control"] = document.etag, "no-cache"
        return response


class OpenApiDocument(NamedTuple):
    """``callers``: who may call an operation, by its id, which the document itself does not state."""

    body: bytes
    gzipped: bytes
    etag: str
    callers: dict[str, Callers]


PREPARE_AFTER = 10.0  # seconds after a worker's start

_building = Lock()


async def prepare_openapi_document() -> None:
    """A task of each worker's loop that generates the document before a user needs it."""
    await asyncio.sleep(PREPARE_AFTER)
    await asyncio.to_thread(get_openapi_document)


def get_openapi_document() -> OpenApiDocument:
    """The document. Generating it takes a second, so each process does it once."""
    with _building:
        return _make_openapi_document()


@cache
def _make_openapi_document() -> OpenApiDocument:
    generator = SchemaGenerator()
    schema = generator.get_schema(request=None, public=True)
    body = OpenApiJsonRenderer().render(schema, None, {})
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return OpenApiDocument(body, gzip.compress(body, mtime=0), etag, read_callers(generator, schema))


@extend_schema(exclude=True)
class UnknownRoute(APIView):
    """Answers unknown paths below /api/: 401 without a token, 404 with one."""

    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.user is None:
            raise AuthenticationRequired
        raise NotFound(f"{drop_secrets(request.path)} not found.")

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        raise NotFound

    post = put = patch = delete = head = options = get
