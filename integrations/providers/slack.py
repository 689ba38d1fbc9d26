"""Posts to Slack: as an app to several channels, or through an incoming webhook."""

import re
from typing import Any

import orjson

from integrations.deliveries.connections import Answer
from integrations.messages.message import Message, links
from integrations.messages.outgoing import JSON, Outgoing, split_names
from integrations.providers.provider import (
    CUSTOM_HEADERS,
    FLAG_EVENTS,
    MASK,
    OF_FLAGADMIN,
    REQUEST_EVENTS,
    WITHOUT_VARIANTS,
    Parameter,
    Provider,
    make_secret_header,
    make_secret_url,
)

SLACK_URL = "https://slack.com/api/chat.postMessage"
SLACK_TAG = "slack"
"""Tags of this type name channels."""
PASSING = ("fatal_error", "internal_error", "ratelimited", "request_timeout", "service_unavailable")
"""Slack errors that may be temporary."""
_NOT_OK = re.compile(r'"ok"\s*:\s*false')
_ERROR = re.compile(r'"error"\s*:\s*"(\w{1,100})"')
_LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s]*)\)")


def make_slack_body(message: Message) -> dict[str, Any]:
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


def build_for_app(parameters: dict[str, Any], message: Message) -> Outgoing:
    """One request for each channel: the channels in the flag's tags, or the default ones."""
    channels = [tag["value"] for tag in message.tags if tag["type"] == SLACK_TAG]
    channels = channels or split_names(parameters.get("defaultChannels"))
    body = make_slack_body(message)
    bodies = {channel: orjson.dumps({"channel": channel, **body}) for channel in dict.fromkeys(channels)}
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "Authorization": f"Bearer {parameters['accessToken']}",
    }
    details = {"url": SLACK_URL, "channels": list(bodies), "body": body}
    return Outgoing(SLACK_URL, bodies, headers, details, find_refusal=_find_slack_error, passes=_passes)


def _find_slack_error(answer: Answer) -> str:
    """Finds the error in a 200 answer of Slack with ``"ok": false``."""
    if not _NOT_OK.search(answer.text):
        return ""
    error = _ERROR.search(answer.text)
    return f"Slack refused it: {error[1] if error else answer.text[:100]}."


def _passes(refusal: str) -> bool:
    return any(f" {error}." in refusal for error in PASSING)


def build_for_webhook(parameters: dict[str, Any], message: Message) -> Outgoing:
    body = make_slack_body(message)
    optional = {"channel": "defaultChannel", "username": "username", "icon_emoji": "emojiIcon"}
    body |= {key: str(parameters[name]) for key, name in optional.items() if parameters.get(name)}
    details = {"url": MASK, "body": body}
    return Outgoing(str(parameters["url"]), {"": orjson.dumps(body)}, dict(JSON), details)


WEBHOOK = Provider(
    "slack",
    "Slack incoming webhook",
    "Slack webhook request",
    "Posts to a Slack channel through an incoming webhook.",
    parameters=(
        make_secret_url("Slack webhook URL", "https://hooks.slack.com/services/…"),
        Parameter("defaultChannel", "Channel", "Only if the webhook may override it."),
        Parameter("username", "Name", "Only if the webhook may override it."),
        Parameter("emojiIcon", "Emoji", "Shown as its picture.", placeholder=":checkered_flag:"),
        CUSTOM_HEADERS,
    ),
    events=(
        *WITHOUT_VARIANTS,
        "feature-variants-updated",
        "release-plan-progressions-paused",
        "release-plan-progressions-resumed",
        *OF_FLAGADMIN,
    ),
    build=build_for_webhook,
)

APP = Provider(
    "slack-app",
    "Slack app",
    "Slack message",
    "Posts to Slack channels as your own app. Tags of type slack choose the channel.",
    parameters=(
        make_secret_header(
            "accessToken", "Access token", "The app's bot token, with the scope chat:write: xoxb-…"
        ),
        Parameter(
            "defaultChannels",
            "Channels",
            "Separated by commas. For flags without a tag of type slack, and for all other events.",
            placeholder="releases, checkout",
        ),
    ),
    events=(
        *(name for name in FLAG_EVENTS if name != "feature-updated"),
        *REQUEST_EVENTS,
        "addon-config-created",
        "addon-config-deleted",
        "addon-config-updated",
        "api-token-created",
        "api-token-deleted",
        "change-edited",
        "change-request-rejected",
        "context-field-created",
        "context-field-deleted",
        "context-field-updated",
        "feature-deleted",
        "feature-tagged",
        "feature-untagged",
        "group-created",
        "group-deleted",
        "group-updated",
        "banner-created",
        "banner-updated",
        "banner-deleted",
        "project-created",
        "project-archived",
        "project-deleted",
        "segment-created",
        "segment-deleted",
        "segment-updated",
        "service-account-created",
        "service-account-deleted",
        "service-account-updated",
        "user-created",
        "user-deleted",
        "user-updated",
        "user-access-request-registered",
        "user-access-request-approved",
        "user-access-request-rejected",
        *OF_FLAGADMIN,
    ),
    build=build_for_app,
    tag_types=(SLACK_TAG,),
)
