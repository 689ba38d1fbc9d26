"""Adds events to New Relic as custom events."""

from typing import Any

import orjson

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


def build(parameters: dict[str, Any], message: Message) -> Outgoing:
    text, errors = fill_template(parameters, message, is_json=True)
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


PROVIDER = Provider(
    "new-relic",
    "New Relic",
    "New Relic Events API request",
    "Adds each event to New Relic as a custom event (UnleashServiceEvent).",
    parameters=(
        Parameter(
            "url",
            "New Relic events URL",
            "Your account's URL, which contains its number.",
            type="url",
            required=True,
            placeholder="https://insights-collector.newrelic.com/v1/accounts/1/events",
        ),
        make_secret_header("licenseKey", "New Relic license key", "Of your account."),
        CUSTOM_HEADERS,
        TEMPLATE,
    ),
    events=FLAG_EVENTS,
    build=build,
    tag_types=("new-relic",),
)
