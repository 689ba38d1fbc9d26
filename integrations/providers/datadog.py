"""Adds events to Datadog's event stream."""

from typing import Any

import orjson
from django.conf import settings

from integrations.messages.message import Message
from integrations.messages.outgoing import JSON, Outgoing, fill_template
from integrations.providers.provider import (
    CUSTOM_HEADERS,
    FLAG_EVENTS,
    TEMPLATE,
    Parameter,
    Provider,
    make_secret_header,
)

DATADOG_URL = "https://api.datadoghq.com/api/v1/events"


def build(parameters: dict[str, Any], message: Message) -> Outgoing:
    text, errors = fill_template(parameters, message)
    tags = [f"{tag['type']}:{tag['value']}" for tag in message.tags]
    body = {
        "text": f"%%% \n {message.markdown} \n %%% " if text is None else text,
        "title": f"{settings.INTEGRATION_NAME} notification update",
        "tags": tags,
    }
    if source := parameters.get("sourceTypeName"):
        body["source_type_name"] = str(source)
    headers = {**JSON, "DD-API-KEY": str(parameters["apiKey"])}
    url = str(parameters.get("url") or DATADOG_URL)
    return Outgoing(url, {"": orjson.dumps(body)}, headers, {"url": url, "body": body}, errors)


PROVIDER = Provider(
    "datadog",
    "Datadog",
    "Datadog Events API request",
    "Adds each event to Datadog's event stream.",
    parameters=(
        Parameter("url", "Datadog events URL", "Of your site.", type="url", placeholder=DATADOG_URL),
        make_secret_header("apiKey", "Datadog API key", "Your organization's API key."),
        Parameter("sourceTypeName", "Source type name", "For filtering in Datadog."),
        CUSTOM_HEADERS,
        TEMPLATE,
    ),
    events=FLAG_EVENTS,
    build=build,
    tag_types=("datadog",),
)
