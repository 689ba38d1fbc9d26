"""Posts adaptive cards through a workflow of Microsoft Teams."""

from typing import Any

import orjson
from django.conf import settings

from integrations.messages.message import Message, defuse, links
from integrations.messages.outgoing import JSON, Outgoing
from integrations.providers.provider import CHAT_EVENTS, CUSTOM_HEADERS, MASK, Provider, make_secret_url


def build(parameters: dict[str, Any], message: Message) -> Outgoing:
    event = message.event
    facts = [{"title": "User:", "value": defuse(message.author)}, {"title": "Action:", "value": event.type}]
    items = [
        {"type": "TextBlock", "text": f"{settings.INTEGRATION_NAME} update notification", "style": "heading"},
        {"type": "TextBlock", "text": message.markdown, "wrap": True},
        {"type": "FactSet", "facts": facts},
    ]
    first, *others = links(event)
    card = {
        "type": "AdaptiveCard",
        "body": [{"type": "Container", "items": items}],
        "actions": [_open_url("Go to feature", first.url), *(_open_url(*link) for link in others)],
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "version": "1.5",
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    body = {"type": "message", "attachments": [attachment]}
    details = {"url": MASK, "body": body}
    return Outgoing(str(parameters["url"]), {"": orjson.dumps(body)}, dict(JSON), details)


def _open_url(label: str, url: str) -> dict[str, str]:
    return {"type": "Action.OpenUrl", "title": label, "url": url}


PROVIDER = Provider(
    "teamsworkflow",
    "Microsoft Teams - Workflow",
    "Teams webhook request",
    "Posts a card for each event to a Microsoft Teams channel through a workflow.",
    parameters=(
        make_secret_url("Workflow URL", "The URL of a workflow that posts what it receives."),
        CUSTOM_HEADERS,
    ),
    events=CHAT_EVENTS,
    build=build,
)
