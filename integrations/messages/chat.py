"""Messages for people (Slack, Microsoft Teams, e-mail), and the function that writes each kind."""

import html
import re
from typing import Any

import orjson
from django.conf import settings

from integrations.deliveries.connections import Answer
from integrations.messages.message import Link, Message, defuse, links, plain_text
from integrations.messages.outgoing import (
    JSON,
    Builder,
    Mail,
    Outgoing,
    add_custom_headers,
    make_datadog,
    make_new_relic,
    make_webhook,
)
from integrations.providers import MASK, PROVIDERS, Provider

SLACK_URL = "https://slack.com/api/chat.postMessage"
SLACK_TAG = "slack"
"""Tags of this type name channels."""
PASSING = ("fatal_error", "internal_error", "ratelimited", "request_timeout", "service_unavailable")
"""Slack errors that may be temporary."""
_LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s]*)\)")
_NOT_OK = re.compile(r'"ok"\s*:\s*false')
_ERROR = re.compile(r'"error"\s*:\s*"(\w{1,100})"')


def make_slack_app(parameters: dict[str, Any], message: Message) -> Outgoing:
    """One request for each channel: the channels in the flag's tags, or the default ones."""
    channels = [tag["value"] for tag in message.tags if tag["type"] == SLACK_TAG]
    channels = channels or split_names(parameters.get("defaultChannels"))
    body = _make_slack_body(message)
    bodies = {channel: orjson.dumps({"channel": channel, **body}) for channel in dict.fromkeys(channels)}
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "Authorization": f"Bearer {parameters['accessToken']}",
    }
    details = {"url": SLACK_URL, "channels": list(bodies), "body": body}
    return Outgoing(SLACK_URL, bodies, headers, details, find_refusal=_find_slack_error, passes=_passes)


def make_slack_webhook(parameters: dict[str, Any], message: Message) -> Outgoing:
    body = _make_slack_body(message)
    optional = {"channel": "defaultChannel", "username": "username", "icon_emoji": "emojiIcon"}
    body |= {key: str(parameters[name]) for key, name in optional.items() if parameters.get(name)}
    details = {"url": MASK, "body": body}
    return Outgoing(str(parameters["url"]), {"": orjson.dumps(body)}, dict(JSON), details)


def make_teams(parameters: dict[str, Any], message: Message) -> Outgoing:
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


def make_mail(parameters: dict[str, Any], message: Message) -> Mail:
    text = plain_text(message.markdown)
    subject = " ".join(f"{parameters.get('subjectPrefix') or '[flagadmin]'} {text}".split())[:200]
    lines = [text, *([f"Comment: {message.event.comment}"] if message.event.comment else [])]
    addresses = links(message.event)
    return Mail(
        split_names(parameters["recipients"]),
        subject,
        "\n\n".join([*lines, "\n".join(f"{link.label}: {link.url}" for link in addresses)]) + "\n",
        "".join(f"<p>{html.escape(line)}</p>" for line in lines)
        + f"<p>{' · '.join(map(_make_anchor, addresses))}</p>",
    )


def split_names(text: Any) -> list[str]:
    return [name for part in str(text or "").split(",") if (name := part.strip())]


def _make_anchor(link: Link) -> str:
    return f'<a href="{html.escape(link.url)}">{html.escape(link.label)}</a>'


def _open_url(label: str, url: str) -> dict[str, str]:
    return {"type": "Action.OpenUrl", "title": label, "url": url}


def _make_slack_body(message: Message) -> dict[str, Any]:
    text = _make_slack_text(message.markdown)
    buttons = [
        {"type": "button", "text": {"type": "plain_text", "text": link.label}, "url": link.url[:3000]}
        for link in links(message.event)
    ]
    blocks = [
        {"type": "section", "text": {"type": "mrkdwn", "text": text[:3000]}},
        {"type": "actions", "elements": buttons},
    ]
    return {"text": text, "blocks": blocks, "unfurl_links": False, "unfurl_media": False}


def _make_slack_text(text: str) -> str:
    """Converts Markdown to Slack's syntax. Escapes `<`, `>` and `&`, so that names cannot mention anyone."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINK.sub(lambda link: f"<{link[2]}|{link[1]}>", escaped)


def _find_slack_error(answer: Answer) -> str:
    """Finds the error in a 200 answer of Slack with ``"ok": false``."""
    if not _NOT_OK.search(answer.text):
        return ""
    error = _ERROR.search(answer.text)
    return f"Slack refused it: {error[1] if error else answer.text[:100]}."


def _passes(refusal: str) -> bool:
    return any(f" {error}." in refusal for error in PASSING)


_BUILDERS: dict[str, Builder] = {
    "webhook": make_webhook,
    "slack-app": make_slack_app,
    "slack": make_slack_webhook,
    "teamsworkflow": make_teams,
    "email": make_mail,
    "datadog": make_datadog,
    "new-relic": make_new_relic,
}
assert _BUILDERS.keys() == PROVIDERS.keys()


def make_request(provider: Provider, parameters: dict[str, Any], message: Message) -> Outgoing | Mail:
    """``parameters``: all of them, including the secrets."""
    request = _BUILDERS[provider.name](parameters, message)
    if isinstance(request, Outgoing):
        add_custom_headers(request, str(parameters.get("customHeaders") or ""))
    return request
