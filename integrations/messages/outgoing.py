"""Requests that deliver an event: signed, optionally with Mustache templates and extra headers.

The specification is at https://mustache.github.io/mustache.5.html. Templates come from people who may not be trusted
with this server, and no library on PyPI bounds their work. Tried in November 2026, with three nested sections over a
list of 200: chevron-blue 0.3, the maintained fork of chevron, takes 27 seconds and produces 8 MB. It reads attributes
of Python objects (`{{a.__class__}}`), calls methods named in a section, and fails with IndexError for `{{}}`.
pystache 0.6 drops everything before an unclosed section, and fails with KeyError and IndexError for some templates.
Guarding either of them would take as much code as this module.
"""

import base64
import hashlib
import hmac
import html
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from integrations.deliveries.connections import Answer
from integrations.messages.message import Message

# Headers that the connection sets, or that prove that the request comes from this server.
_OUR_HEADERS = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
    }
)


def _accept(answer: Answer) -> str:
    return ""


def _never(refusal: str) -> bool:
    return False


@dataclass(slots=True)
class Outgoing:
    """An HTTP request, or several with different bodies: ``bodies`` are by recipient, "" if there is only one.

    ``errors``: problems with the integration's settings; the request is sent anyway. ``find_refusal`` returns the
    reason if an answer with a success status is a refusal, or ""; ``passes`` tells whether such a refusal may be
    temporary.
    """

    url: str
    bodies: dict[str, bytes]
    headers: dict[str, str]
    details: dict[str, Any]
    errors: list[str] = field(default_factory=list)
    find_refusal: Callable[[Answer], str] = _accept
    passes: Callable[[str], bool] = _never


@dataclass(slots=True)
class Mail:
    """An e-mail, sent by the installation's SMTP server."""

    recipients: list[str]
    subject: str
    text: str
    html: str

    @property
    def details(self) -> dict[str, Any]:
        return {"recipients": self.recipients, "subject": self.subject, "body": self.text}


JSON = {"Content-Type": "application/json"}


def split_names(text: Any) -> list[str]:
    return [name for part in str(text or "").split(",") if (name := part.strip())]


def sign(keys: list[str], message_id: str, moment: int, body: bytes) -> str:
    """The header ``webhook-signature`` of Standard Webhooks: one signature per key. ``keys`` are ``whsec_…``."""
    content = f"{message_id}.{moment}.".encode() + body
    return " ".join(f"v1,{_make_signature(key, content)}" for key in keys)


def list_valid_keys(keys: list[dict[str, Any]]) -> list[str]:
    """Lists the valid keys, without replaced ones whose time is over."""
    return [key["key"] for key in keys if key["until"] is None or key["until"] > time.time()]


def _make_signature(key: str, content: bytes) -> str:
    secret = base64.b64decode(key.removeprefix("whsec_"))
    return base64.b64encode(hmac.digest(secret, content, hashlib.sha256)).decode()


def fill_template(
    parameters: dict[str, Any], message: Message, *, is_json: bool = False
) -> tuple[str | None, list[str]]:
    """The text of the template (None without one) and its errors. Values in JSON are escaped for JSON."""
    template = str(parameters.get("bodyTemplate") or "")
    if not template.strip():
        return None, []
    # Encoded twice, so that {{{eventJson}}} is a JSON string in a JSON template.
    text = json.dumps(orjson.dumps(message.document).decode(), ensure_ascii=False)
    context = {"event": message.document, "eventJson": text, "eventMarkdown": message.markdown}
    try:
        made = render(template, context, escape_json) if is_json else render(template, context)
    except TemplateError as error:
        return None, [f"The body template is not valid: {error} The default was sent."]
    return made, [NOT_JSON] if is_json and not _is_json(made) else []


NOT_JSON = (
    "The body template makes no valid JSON of this event, and was sent as it is. Two braces, as in "
    '"{{event.createdBy}}", escape a value for JSON; three do not.'
)


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def add_custom_headers(request: Outgoing, text: str) -> None:
    if not text.strip():
        return
    try:
        headers = json.loads(text)
        fits = isinstance(headers, dict) and all(_is_header(name, value) for name, value in headers.items())
    except (ValueError, RecursionError):
        fits = False
    if not fits:
        request.errors.append("The extra HTTP headers are not a JSON object of strings. They were not sent.")
        return
    taken = {name.lower() for name in headers}
    kept = {name: value for name, value in request.headers.items() if name.lower() not in taken}
    request.headers = kept | {
        name: value for name, value in headers.items() if name.lower() not in _OUR_HEADERS
    }


def _is_header(name: str, value: Any) -> bool:
    return (
        isinstance(value, str)
        and all(part.isascii() and part.isprintable() for part in (name, value))
        and bool(name)
        and not set(name) & set(' :\t"(),/;<=>?@[\\]{}')
    )


_TAG = re.compile(r"\{\{\{([^{}]*)\}\}\}|\{\{([#^/!&]?)([^{}]*)\}\}")

MAX_PARTS, MAX_LENGTH, MAX_DEPTH = 20_000, 500_000, 20
"""Limits on the output of a template: texts, values and list items; characters. And on nested sections."""

Node = str | tuple[str, str, Any]  # text, or (kind, name, nodes of a section)


class TemplateError(Exception):
    """A section without an end or a beginning, or output that is too long."""


def parse(template: str) -> list[Node]:
    """Raises TemplateError."""
    nodes: list[Node] = []
    stack: list[tuple[str, str, list[Node]]] = [("", "", nodes)]
    for kind, name in _read_tokens(template):
        if kind == "text":
            stack[-1][2].append(name)
        elif kind in "#^" and kind:
            stack.append((kind, name, []))
            if len(stack) > MAX_DEPTH:
                raise TemplateError(f"More than {MAX_DEPTH} sections are in each other.")
        elif kind == "/":
            if len(stack) == 1 or stack[-1][1] != name:
                raise TemplateError(f"{{{{/{name}}}}} closes no open section.")
            section = stack.pop()
            stack[-1][2].append(section)
        elif kind != "!":
            stack[-1][2].append((kind, name, None))
    if len(stack) > 1:
        raise TemplateError(f"{{{{#{stack[-1][1]}}}}} is not closed.")
    return nodes


def _read_tokens(template: str) -> Iterator[tuple[str, str]]:
    end = 0
    for tag in _TAG.finditer(template):
        yield "text", template[end : tag.start()]
        raw, kind, name = tag.groups()
        yield ("&", raw.strip()) if raw is not None else (kind, name.strip())
        end = tag.end()
    yield "text", template[end:]


def escape_json(text: str) -> str:
    """The text as it appears inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def render(template: str, context: dict[str, Any], escape: Callable[[str], str] = html.escape) -> str:
    """``{{name}}`` is escaped by ``escape``; ``{{{name}}}`` and ``{{&name}}`` are not. Raises TemplateError."""
    parts: list[str] = []
    length = 0
    for part in _render(parse(template), [context], escape):
        parts.append(part)
        length += len(part)
        if len(parts) > MAX_PARTS or length > MAX_LENGTH:
            raise TemplateError("It makes too much text: its sections go through long lists.")
    return "".join(parts)


def _render(nodes: list[Node], scopes: list[Any], escape: Callable[[str], str]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, str):
            yield node
            continue
        kind, name, inner = node
        value = _look_up(name, scopes)
        if kind == "#" and value not in (None, False, "", []):
            for item in value if isinstance(value, list) else [value]:
                yield ""  # counts even if the section is empty
                yield from _render(inner, [*scopes, item], escape)
        elif kind == "^" and value in (None, False, "", []):
            yield from _render(inner, scopes, escape)
        elif kind in ("", "&"):
            text = _as_text(value)
            yield text if kind else escape(text)


def _look_up(name: str, scopes: list[Any]) -> Any:
    if name == ".":
        return scopes[-1]
    first, *rest = name.split(".")
    value = next(
        (scope[first] for scope in reversed(scopes) if isinstance(scope, dict) and first in scope), None
    )
    for part in rest:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
