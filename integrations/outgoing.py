"""The HTTP request that tells a receiver of an event, for each provider."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.http.timestamps import iso
from integrations.mustache import TemplateError, render
from integrations.providers import MASK, PROVIDERS, Provider
from integrations.wordings import link, markdown

DATADOG_URL = "https://api.datadoghq.com/api/v1/events"
TITLE = "Unleash notification update"

# What the connection decides, or what proves that the request is from here.
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


@dataclass(slots=True)
class Outgoing:
    """``errors``: what is wrong with the integration's settings; the request is sent anyway."""

    url: str
    body: bytes
    headers: dict[str, str]
    details: dict[str, Any]
    errors: list[str] = field(default_factory=list)


def event_document(event: AuditEvent, tags: list[dict[str, str]]) -> dict[str, Any]:
    """The event as receivers get it, with the reference's members."""
    return {
        "id": event.pk,
        "type": event.type,
        "createdBy": event.actor_name,
        "createdAt": iso(event.created_at),
        "createdByUserId": event.actor_id,
        "data": event.after,
        "preData": event.before,
        "tags": tags,
        "featureName": event.feature,
        "project": event.project,
        "environment": event.environment,
        "groupType": "transaction",
        "groupId": event.request_id,
        "comment": event.comment,
    }


def make_request(
    provider: Provider, parameters: dict[str, Any], event: AuditEvent, tags: list[dict[str, str]]
) -> Outgoing:
    """``parameters``: all of them, with the secrets."""
    request = _BUILDERS[provider.name](parameters, event, event_document(event, tags))
    _add_custom_headers(request, str(parameters.get("customHeaders") or ""))
    return request


def sign(keys: list[str], message_id: str, moment: int, body: bytes) -> str:
    """The header ``webhook-signature`` of Standard Webhooks: a signature with each key. ``keys`` are ``whsec_…``."""
    content = f"{message_id}.{moment}.".encode() + body
    return " ".join(f"v1,{_signature(key, content)}" for key in keys)


def valid_keys(keys: list[dict[str, Any]]) -> list[str]:
    """Without those that a newer one has replaced long enough ago."""
    return [key["key"] for key in keys if key["until"] is None or key["until"] > time.time()]


def _signature(key: str, content: bytes) -> str:
    secret = base64.b64decode(key.removeprefix("whsec_"))
    return base64.b64encode(hmac.digest(secret, content, hashlib.sha256)).decode()


def _webhook(parameters: dict[str, Any], event: AuditEvent, document: dict[str, Any]) -> Outgoing:
    content_type = str(parameters.get("contentType") or "application/json")
    headers = {"Content-Type": content_type}
    if authorization := parameters.get("authorization"):
        headers["Authorization"] = str(authorization)
    text, errors = _templated(parameters, event, document)
    body = orjson.dumps(document) if text is None else text.encode()
    details = {"url": MASK, "contentType": content_type, "body": document if text is None else text}
    return Outgoing(str(parameters["url"]), body, headers, details, errors)


def _datadog(parameters: dict[str, Any], event: AuditEvent, document: dict[str, Any]) -> Outgoing:
    text, errors = _templated(parameters, event, document)
    tags = [f"{tag['type']}:{tag['value']}" for tag in document["tags"]]
    body = {
        "text": f"%%% \n {markdown(event)} \n %%% " if text is None else text,
        "title": TITLE,
        "tags": tags,
    }
    if source := parameters.get("sourceTypeName"):
        body["source_type_name"] = str(source)
    headers = {"Content-Type": "application/json", "DD-API-KEY": str(parameters["apiKey"])}
    url = str(parameters.get("url") or DATADOG_URL)
    return Outgoing(url, orjson.dumps(body), headers, {"url": url, "body": body}, errors)


def _new_relic(parameters: dict[str, Any], event: AuditEvent, document: dict[str, Any]) -> Outgoing:
    text, errors = _templated(parameters, event, document)
    body = {
        "eventType": "UnleashServiceEvent",
        "unleashEventType": event.type,
        "featureName": event.feature,
        "environment": event.environment,
        "createdBy": event.actor_name,
        "createdByUserId": event.actor_id,
        "createdAt": _milliseconds(event.created_at),
        **(event.after if isinstance(event.after, dict) else {}),
    }
    headers = {"Content-Type": "application/json", "Api-Key": str(parameters["licenseKey"])}
    content = orjson.dumps(body) if text is None else text.encode()
    details = {"url": str(parameters["url"]), "body": body if text is None else text}
    return Outgoing(str(parameters["url"]), content, headers, details, errors)


def _teams(parameters: dict[str, Any], event: AuditEvent, document: dict[str, Any]) -> Outgoing:
    facts = [{"title": "User:", "value": event.actor_name}, {"title": "Action:", "value": event.type}]
    items = [
        {"type": "TextBlock", "text": "Unleash update notification", "style": "heading"},
        {"type": "TextBlock", "text": markdown(event), "wrap": True},
        {"type": "FactSet", "facts": facts},
    ]
    card = {
        "type": "AdaptiveCard",
        "body": [{"type": "Container", "items": items}],
        "actions": [{"type": "Action.OpenUrl", "title": "Go to feature", "url": link(event)}],
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "version": "1.5",
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    body = {"type": "message", "attachments": [attachment]}
    headers = {"Content-Type": "application/json"}
    return Outgoing(str(parameters["url"]), orjson.dumps(body), headers, {"url": MASK, "body": body})


_BUILDERS: dict[str, Callable[[dict[str, Any], AuditEvent, dict[str, Any]], Outgoing]] = {
    "webhook": _webhook,
    "teamsworkflow": _teams,
    "datadog": _datadog,
    "new-relic": _new_relic,
}
assert _BUILDERS.keys() == PROVIDERS.keys()


def _templated(
    parameters: dict[str, Any], event: AuditEvent, document: dict[str, Any]
) -> tuple[str | None, list[str]]:
    """The text of the template, None without one, and what is wrong with it."""
    template = str(parameters.get("bodyTemplate") or "")
    if not template.strip():
        return None, []
    # Encoded twice, so that {{{eventJson}}} is a JSON string in a JSON template.
    text = json.dumps(orjson.dumps(document).decode(), ensure_ascii=False)
    context = {"event": document, "eventJson": text, "eventMarkdown": markdown(event)}
    try:
        return render(template, context), []
    except TemplateError as error:
        return None, [f"The body template is not valid: {error} The default was sent."]


def _add_custom_headers(request: Outgoing, text: str) -> None:
    if not text.strip():
        return
    try:
        headers = json.loads(text)
        fits = isinstance(headers, dict) and all(_is_header(name, value) for name, value in headers.items())
    except ValueError:
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


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
