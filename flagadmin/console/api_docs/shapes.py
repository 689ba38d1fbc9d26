"""The shape of a body as a tree of its members, an example made from it, and the document's texts as HTML."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from flagadmin.console.api_docs.operations import KINDS, list_alternatives, resolve

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
        inline_html(schema.get("description", "")),
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


def inline_html(text: str) -> SafeString:
    parts: Sequence[str] = re.split(r"``?([^`]+)``?", text)
    opened = (mark_safe("<code>"), mark_safe("</code>"))
    wrapped = ((*opened, part) if odd % 2 else ("", "", part) for odd, part in enumerate(parts))
    return format_html_join("", "{0}{2}{1}", wrapped)
