"""/api/docs/: the API's operations by subject, and a page for each. They need no login, like the document.

The shape of a body as a tree of its members, an example made from it, and the document's texts as HTML.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.gzip import gzip_page
from django.views.generic.base import ContextMixin, TemplateResponseMixin, View
from rest_framework.permissions import SAFE_METHODS

from flagadmin.console.api_docs.operations import (
    KINDS,
    Call,
    Operation,
    as_curl,
    as_json,
    as_python,
    fill_path,
    find_operation,
    get_openapi_document,
    group_by_subject,
    list_alternatives,
    list_operations,
    make_path_value,
    read_document,
    resolve,
)
from flagadmin.core.http.openapi import read_first_sentence
from groups.console import not_allowed

STREAM = "text/event-stream"


@method_decorator([gzip_page, never_cache], name="dispatch")
class OpenPage(TemplateResponseMixin, ContextMixin, View):
    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        raise not_allowed(["GET", "HEAD"])

    def head(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return self.get(request, *args, **kwargs)

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        raise NotImplementedError


class OperationsPage(OpenPage):
    """The list of operations. ``?q=`` narrows it to those that contain every word."""

    template_name = "api_docs/operations.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        text = request.GET.get("q", "").strip()
        subjects = group_by_subject(text)
        context = self.get_context_data(
            title="API",
            q=text,
            subjects=subjects,
            total=sum(len(operations) for _, operations in subjects),
            address=request.build_absolute_uri("/").rstrip("/"),
        )
        return self.render_to_response(context)


@method_decorator(ensure_csrf_cookie, name="dispatch")
class OperationPage(OpenPage):
    """One operation: its callers, parameters, responses and examples, and a form that sends a request."""

    template_name = "api_docs/operation.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        operation = find_operation(kwargs["operation_id"])
        if operation is None:
            query = urlencode({"q": kwargs["operation_id"]})
            return HttpResponseRedirect(f"{reverse('docs')}?{query}")
        return self.render_to_response(self.get_context_data(**describe(request, operation)))


def describe(request: HttpRequest, operation: Operation) -> dict[str, Any]:
    document = read_document()
    described = document["paths"][operation.path][operation.method.lower()]
    callers = get_openapi_document().callers[operation.id]
    parameters = described.get("parameters", [])
    media, content = read_content(described.get("requestBody", {}))
    body = make_body_example(document, content) if "json" in media else None
    path = fill_path(operation.path, parameters)
    header = "Authorization" if callers.tokens else ""
    call = Call(operation.method, request.build_absolute_uri(path), media, body, header)
    answers = list(describe_answers(document, described["responses"]))
    listed = reverse("docs")
    return {
        "title": operation.summary,
        "breadcrumbs": [("API", listed), (operation.subject, f"{listed}#{slugify(operation.subject)}")],
        "operation": operation,
        "description": as_html(drop_summary(described.get("description", ""), operation.summary)),
        "callers": callers,
        "parameters": [describe_parameter(document, operation.path, parameter) for parameter in parameters],
        "media": media,
        "is_json": body is not None,
        "body": describe_shape(document, content["schema"]) if content else None,
        "example_text": as_json(body),
        "curl": "",
        "curl_command": as_curl(call),
        "python": as_python(call),
        "answers": [answer for answer in answers if answer["status"] < "400"],
        "refusals": [answer for answer in answers if answer["status"] >= "400"],
        "others": [other for other in list_operations() if other.subject == operation.subject],
        "can_be_tried": body is not None
        or not (media or any(answer["media"] == STREAM for answer in answers)),
        "is_write": operation.method not in SAFE_METHODS,
    }


def describe_parameter(
    document: Mapping[str, Any], path: str, parameter: Mapping[str, Any]
) -> dict[str, Any]:
    schema = parameter["schema"]
    return {
        "name": parameter["name"],
        "place": parameter["in"],
        "type": describe_type(document, schema),
        "text": _explain(parameter),
        "limits": describe_limits(schema),
        "is_required": parameter.get("required", False),
        "example": make_path_value(path, parameter["name"]) if parameter["in"] == "path" else "",
    }


def read_content(described: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The media type and its content in the document; ("", {}) without a body."""
    contents: Mapping[str, Mapping[str, Any]] = described.get("content", {})
    return next(iter(contents.items()), ("", {}))


def make_body_example(document: Mapping[str, Any], content: Mapping[str, Any]) -> Any:
    example = next((value["value"] for value in content.get("examples", {}).values()), None)
    return make_example(document, content["schema"]) if example is None else example


def describe_answers(document: Mapping[str, Any], responses: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for status, response in sorted(responses.items()):
        media, content = read_content(response)
        is_json = media == "application/json"
        yield {
            "status": status,
            "phrase": HTTPStatus(int(status)).phrase,
            "text": inline_html(response.get("description", "")),
            "media": media,
            "shape": describe_shape(document, content["schema"]) if is_json else None,
            "example_text": as_json(make_body_example(document, content)) if is_json else "",
        }


def drop_summary(description: str, summary: str) -> str:
    """The description without its first sentence, if that is the summary."""
    if read_first_sentence(description) != summary:
        return description
    return re.sub(r"\A(?:[^.:;]|[.:;](?!\s|\Z))*[.:;]?\s*", "", description)


Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Member:
    """``name`` is "" for a body that is not an object, such as a list of strings."""

    name: str
    type: str
    text: str = ""
    limits: str = ""
    is_required: bool = False
    members: Sequence["Member"] = ()


def describe_shape(document: Schema, schema: Schema) -> Member:
    return _describe_member(document, "", schema, frozenset(), is_required=False)


def _describe_member(
    document: Schema, name: str, schema: Schema, above: frozenset[str], *, is_required: bool
) -> Member:
    """``above`` has the names of the enclosing schemas: a schema that contains itself is not unfolded again."""
    inner, names = _find_object(document, schema)
    members: list[Member] = []
    if not names & above:
        required = inner.get("required", ())
        members = [
            _describe_member(document, key, member, above | names, is_required=key in required)
            for key, member in inner.get("properties", {}).items()
        ]
    return Member(
        name,
        describe_type(document, schema),
        _explain(schema),
        describe_limits(schema),
        is_required,
        members,
    )


def _find_object(document: Schema, schema: Schema) -> tuple[Schema, frozenset[str]]:
    """The object in a schema, its list items or its map values, and the names of the schemas on the way to it."""
    names: set[str] = set()
    while True:
        schema, name = resolve(document, schema)
        names |= {name} if name else set()
        inner = next(list_alternatives(schema), None)
        if inner is None and "properties" not in schema:
            inner = schema.get("items") or schema.get("additionalProperties")
        if not isinstance(inner, Mapping) or not inner:
            return schema, frozenset(names)
        schema = inner


def describe_type(document: Schema, schema: Schema) -> str:
    """Describes a type in words: ``string``, ``list of object``, ``one of on, off``, ``integer or null``."""
    schema, _ = resolve(document, schema)
    several = [describe_type(document, alternative) for kind in KINDS for alternative in schema.get(kind, ())]
    if several:
        return " or ".join(dict.fromkeys(several))
    if "enum" in schema:
        return "one of " + ", ".join("null" if value is None else str(value) for value in schema["enum"])
    names = schema.get("type", "any")
    return " or ".join(
        _describe_named_type(document, schema, name)
        for name in ([names] if isinstance(names, str) else names)
    )


def _describe_named_type(document: Schema, schema: Schema, name: str) -> str:
    if name == "array":
        return f"list of {describe_type(document, schema.get('items', {}))}"
    if name == "object" and isinstance(values := schema.get("additionalProperties"), Mapping) and values:
        return f"object of {describe_type(document, values)}"
    return "date and time" if schema.get("format") == "date-time" else name


_LIMITS = (
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("maxItems", "at most {} items"),
    ("pattern", "matches {}"),
    ("default", "default {}"),
)


def describe_limits(schema: Schema) -> str:
    """``at most 100 characters; default 5``; leaves out limits that do not matter, such as one character at least."""
    limits = [
        words.format(f"{schema[key]:,}" if type(schema[key]) is int else orjson.dumps(schema[key]).decode())
        for key, words in _LIMITS
        if schema.get(key) is not None and not (key == "minLength" and schema[key] == 1)
    ]
    return "; ".join(limits)


# Values for members in generated examples, if their name says more than their type.
_VALUES: dict[str, Any] = {
    "name": "new-checkout",
    "appName": "web-shop",
    "constraints": [],
    "contextName": "country",
    "email": "kari@example.com",
    "environment": "production",
    "environments": ["production"],
    "feature": "new-checkout",
    "features": ["new-checkout"],
    "instanceId": "web-shop-1",
    "newProjectId": "other",
    "operator": "IN",
    "password": "a long passphrase",
    "project": "default",
    "projectId": "default",
    "tagType": "simple",
    "url": "https://example.com/new-checkout",
    "userId": 1,
    "username": "kari",
    "value": "new-checkout",
    "values": ["NO"],
}


def make_example(document: Schema, schema: Schema, name: str = "") -> Any:
    """Makes a small value that the schema allows: an object has its required members, or without any its first ones."""
    schema, _ = resolve(document, schema)
    if name in _VALUES and fits(document, schema, _VALUES[name]):
        return _VALUES[name]
    for key in ("example", "const", "default"):
        if schema.get(key) is not None:
            return schema[key]
    if "enum" in schema:
        return schema["enum"][0]
    if several := list(list_alternatives(schema)):
        return make_example(document, several[0], name)
    kind = describe_type(document, schema)
    if "properties" in schema:
        return _make_object_example(document, schema)
    if kind.startswith("list of"):
        return [make_example(document, schema["items"], name)] if schema.get("items") else []
    return next((value for prefix, value in _OF_TYPE if kind.startswith(prefix)), {})


_OF_TYPE: tuple[tuple[str, Any], ...] = (
    ("string", "text"),
    ("date and time", "2026-11-23T09:00:00Z"),
    ("integer", 1),
    ("number", 1),
    ("boolean", True),
)
_FIRST_MEMBERS = 2


def _make_object_example(document: Schema, schema: Schema) -> dict[str, Any]:
    members = {key: member for key, member in schema["properties"].items() if not member.get("readOnly")}
    keys = [key for key in members if key in schema.get("required", ())] or list(members)[:_FIRST_MEMBERS]
    return {key: make_example(document, members[key], key) for key in keys}


def fits(document: Schema, schema: Schema, value: Any) -> bool:
    """Whether the schema's type fits the value, as far as an example needs it."""
    names = {bool: "boolean", int: "integer", str: "string", list: "list", dict: "object"}
    kinds = describe_type(document, schema).split(" or ")
    if isinstance(value, list) and value:
        return any(kind.startswith(f"list of {names[type(value[0])]}") for kind in kinds)
    return any(kind.startswith((names[type(value)], "any")) for kind in kinds)


def as_html(text: str) -> SafeString:
    """A description as HTML, with lists of ``* …``."""
    return format_html_join(
        "", "{}", ((_block(block),) for block in re.split(r"\n{2,}", text.strip()) if block)
    )


def _block(block: str) -> SafeString:
    if block.startswith("* "):
        items = re.split(r"\n?^\* ", block, flags=re.MULTILINE)[1:]
        return format_html(
            "<ul>{}</ul>", format_html_join("", "<li>{}</li>", ((inline_html(item),) for item in items))
        )
    return format_html("<p>{}</p>", inline_html(block))


NAMES_AGAIN = re.compile(r"(?:\A|\n\n)(?:\* `([^`]+)` - \1(?:\n|\Z))+\Z")
"""The choices as a list, which the type names already."""


def _explain(described: Schema) -> SafeString:
    return inline_html(NAMES_AGAIN.sub("", described.get("description", "")))


def inline_html(text: str) -> SafeString:
    parts: Sequence[str] = re.split(r"``?([^`]+)``?", text)
    opened = (mark_safe("<code>"), mark_safe("</code>"))
    wrapped = ((*opened, part) if odd % 2 else ("", "", part) for odd, part in enumerate(parts))
    return format_html_join("", "{0}{2}{1}", wrapped)
