"""Sends e-mails through the installation's SMTP server."""

import html
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from integrations.messages.message import Link, Message, links, plain_text
from integrations.messages.outgoing import Mail, split_names
from integrations.providers.provider import CHAT_EVENTS, Parameter, Provider

MAX_RECIPIENTS = 20


def build(parameters: dict[str, Any], message: Message) -> Mail:
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


def _make_anchor(link: Link) -> str:
    return f'<a href="{html.escape(link.url)}">{html.escape(link.label)}</a>'


def find_recipient_problems(value: str) -> Iterator[str]:
    addresses = split_names(value)
    if not 1 <= len(addresses) <= MAX_RECIPIENTS:
        yield f"must be 1 to {MAX_RECIPIENTS} addresses, separated by commas"
    for address in addresses:
        try:
            validate_email(address)
        except ValidationError:
            yield f"{address[:100]} is not an email address"


PROVIDER = Provider(
    "email",
    "Email",
    "Email",
    "Emails each event through this installation's SMTP server.",
    parameters=(
        Parameter(
            "recipients",
            "Recipients",
            "Addresses, separated by commas.",
            required=True,
            placeholder="release-team@example.org",
            check=find_recipient_problems,
        ),
        Parameter("subjectPrefix", "Subject begins with", "To sort by.", placeholder="[flagadmin]"),
    ),
    events=CHAT_EVENTS,
    build=build,
)
