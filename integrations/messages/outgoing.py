"""Requests that deliver an event to providers that take data. `chat` has those whose readers are people."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from integrations.deliveries.connections import Answer
from integrations.messages.message import Message
from integrations.messages.mustache import TemplateError, render
from integrations.providers import MASK

DATADOG_URL = "https://api.datadoghq.com/api/v1/events"
TITLE = "Unleash notification update"

# Headers that the connection decides, or that prove that the request is from here.
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
    """An HTTP request, or several with different bodies: ``bodies`` are by whom they are for, "" if there is only one.

    ``errors``: what is wrong with the integration's settings; the request is sent anyway. ``find_refusal`` says why an
    answer with a status of success is none, or ""; ``passes``, whether such a refusal may be none the next time.
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


Builder = Callable[[dict[str, Any], Message], Outgoing | Mail]
JSON = {"Content-Type": "application/json"}


def sign(keys: list[str], message_id: str, moment: int, body: bytes) -> str:
    """The header ``webhook-signature`` of Standard Webhooks: a signature with each key. ``keys`` are ``whsec_…``."""
    content = f"{message_id}.{moment}.".encode() + body
    return " ".join(f"v1,{_make_signature(key, content)}" for key in keys)


def list_valid_keys(keys: list[dict[str, Any]]) -> list[str]:
    """Lists the valid keys, without those that a newer one has replaced long enough ago."""
    return [key["key"] for key in keys if key["until"] is None or key["until"] > time.time()]


def _make_signature(key: str, content: bytes) -> str:
    secret = base64.b64decode(key.removeprefix("whsec_"))
    return base64.b64encode(hmac.digest(secret, content, hashlib.sha256)).decode()


def make_webhook(parameters: dict[str, Any], message: Message) -> Outgoing:
    content_type = str(parameters.get("contentType") or "application/json")
    headers = {"Content-Type": content_type}
    if authorization := parameters.get("authorization"):
        headers["Authorization"] = str(authorization)
    text, errors = _fill_template(parameters, message)
    body = orjson.dumps(message.document) if text is None else text.encode()
    details = {"url": MASK, "contentType": content_type, "body": message.document if text is None else text}
    return Outgoing(str(parameters["url"]), {"": body}, headers, details, errors)


def make_datadog(parameters: dict[str, Any], message: Message) -> Outgoing:
    text, errors = _fill_template(parameters, message)
    tags = [f"{tag['type']}:{tag['value']}" for tag in message.tags]
    body = {
        "text": f"%%% \n {message.markdown} \n %%% " if text is None else text,
        "title": TITLE,
        "tags": tags,
    }
    if source := parameters.get("sourceTypeName"):
        body["source_type_name"] = str(source)
    headers = {**JSON, "DD-API-KEY": str(parameters["apiKey"])}
    url = str(parameters.get("url") or DATADOG_URL)
    return Outgoing(url, {"": orjson.dumps(body)}, headers, {"url": url, "body": body}, errors)


def make_new_relic(parameters: dict[str, Any], message: Message) -> Outgoing:
    text, errors = _fill_template(parameters, message)
    event = message.event
    body = {
        "eventType": "UnleashServiceEvent",
        "unleashEventType": event.type,
        "featureName": event.feature,
        "environment": event.environment,
        "createdBy": event.actor_name,
        "createdByUserId": event.actor_id,
        "createdAt": int(event.created_at.timestamp() * 1000),
        **(event.after if isinstance(event.after, dict) else {}),
    }
    headers = {**JSON, "Api-Key": str(parameters["licenseKey"])}
    content = orjson.dumps(body) if text is None else text.encode()
    details = {"url": str(parameters["url"]), "body": body if text is None else text}
    return Outgoing(str(parameters["url"]), {"": content}, headers, details, errors)


def _fill_template(parameters: dict[str, Any], message: Message) -> tuple[str | None, list[str]]:
    """The text of the template, None without one, and what is wrong with it."""
    template = str(parameters.get("bodyTemplate") or "")
    if not template.strip():
        return None, []
    # Encoded twice, so that {{{eventJson}}} is a JSON string in a JSON template.
    text = json.dumps(orjson.dumps(message.document).decode(), ensure_ascii=False)
    context = {"event": message.document, "eventJson": text, "eventMarkdown": message.markdown}
    try:
        return render(template, context), []
    except TemplateError as error:
        return None, [f"The body template is not valid: {error} The default was sent."]


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
