"""Sends the event itself, or the text that a template makes of it."""

from typing import Any

import orjson

from integrations.messages.message import Message
from integrations.messages.outgoing import Outgoing, fill_template
from integrations.providers.provider import (
    CUSTOM_HEADERS,
    MASK,
    OF_FLAGADMIN,
    REQUEST_EVENTS,
    TEMPLATE,
    WITHOUT_VARIANTS,
    Parameter,
    Provider,
    find_header_problems,
    make_secret_header,
    make_secret_url,
)


def build(parameters: dict[str, Any], message: Message) -> Outgoing:
    content_type = str(parameters.get("contentType") or "application/json")
    headers = {"Content-Type": content_type}
    if authorization := parameters.get("authorization"):
        headers["Authorization"] = str(authorization)
    text, errors = fill_template(parameters, message, is_json="json" in content_type.lower())
    body = orjson.dumps(message.document) if text is None else text.encode()
    details = {"url": MASK, "contentType": content_type, "body": message.document if text is None else text}
    return Outgoing(str(parameters["url"]), {"": body}, headers, details, errors)


PROVIDER = Provider(
    "webhook",
    "Webhook",
    "Webhook request",
    "Sends each event as an HTTP POST to your URL.",
    parameters=(
        make_secret_url("Webhook URL", "Each event is sent there."),
        Parameter(
            "contentType",
            "Content-Type",
            "The media type of the body.",
            placeholder="application/json",
            check=find_header_problems,
        ),
        make_secret_header("authorization", "Authorization", "The header of each request.", required=False),
        CUSTOM_HEADERS,
        TEMPLATE,
    ),
    events=(
        *WITHOUT_VARIANTS,
        "feature-completed",
        "feature-variants-updated",
        "feature-tagged",
        "feature-untagged",
        *REQUEST_EVENTS,
        *OF_FLAGADMIN,
    ),
    build=build,
)
