"""What is said of a provider: its parameters, with the reference's names, its events, and the request that it makes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from flagadmin.core.http.outside import is_url
from integrations.messages.message import Message
from integrations.messages.outgoing import Mail, Outgoing, TemplateError, add_custom_headers, parse

FLAG_EVENTS = (
    "feature-created",
    "feature-updated",
    "feature-archived",
    "feature-revived",
    "feature-stale-on",
    "feature-stale-off",
    "feature-environment-enabled",
    "feature-environment-disabled",
    "feature-strategy-remove",
    "feature-strategy-update",
    "feature-strategy-add",
    "feature-metadata-updated",
    "feature-project-change",
    "feature-environment-variants-updated",
    "feature-potentially-stale-on",
)
REQUEST_EVENTS = (
    "change-request-created",
    "change-request-discarded",
    "change-added",
    "change-discarded",
    "change-request-approved",
    "change-request-approval-added",
    "change-request-cancelled",
    "change-request-sent-to-review",
    "change-request-applied",
    "change-request-scheduled",
    "change-request-scheduled-application-success",
    "change-request-scheduled-application-failure",
    "change-request-schedule-suspended",
    "release-plan-progressions-paused",
    "release-plan-progressions-resumed",
)
OF_FLAGADMIN = ("api-token-expiring", "segment-list-not-fetched")
WITHOUT_VARIANTS = tuple(name for name in FLAG_EVENTS if name != "feature-environment-variants-updated")
CHAT_EVENTS = (
    *WITHOUT_VARIANTS,
    "feature-variants-updated",
    *REQUEST_EVENTS,
    "change-edited",
    "change-request-rejected",
    *OF_FLAGADMIN,
)

MASK = "*****"
"""Represents a stored sensitive value. Sending it back keeps the value."""
MAX_LENGTH = 10_000  # characters of a value


def find_nothing(value: str) -> Iterable[str]:
    return ()


def find_header_problems(value: str) -> Iterator[str]:
    if not (value.isascii() and value.isprintable()):
        yield "must only have printable ASCII characters, because it is sent in a header"


def find_template_problems(value: str) -> Iterator[str]:
    try:
        parse(value)
    except TemplateError as error:
        yield str(error)


@dataclass(frozen=True, slots=True)
class Parameter:
    """``type``: url, text, or textfield (several lines). ``check`` returns the problems of a value."""

    name: str
    label: str
    description: str
    type: str = "text"
    required: bool = False
    sensitive: bool = False
    placeholder: str = ""
    check: Callable[[str], Iterable[str]] = find_nothing

    def find_problems(self, value: str) -> Iterable[str]:
        if len(value) > MAX_LENGTH:
            return [f"must have at most {MAX_LENGTH:,} characters"]
        if self.type == "url" and not is_url(value):
            return ["must be a URL like https://example.com/path"]
        return self.check(value)


def make_secret_url(label: str, description: str) -> Parameter:
    """The URL that requests are sent to, which has a password."""
    return Parameter("url", label, description, type="url", required=True, sensitive=True)


def make_secret_header(name: str, label: str, description: str, *, required: bool = True) -> Parameter:
    """A password that is sent in a header."""
    return Parameter(name, label, description, "text", required, sensitive=True, check=find_header_problems)


CUSTOM_HEADERS = Parameter(
    "customHeaders",
    "Extra HTTP headers",
    'A JSON object, such as {"X-Team": "checkout"}.',
    type="textfield",
    sensitive=True,
    placeholder='{"X-Team": "checkout"}',
)
TEMPLATE = Parameter(
    "bodyTemplate",
    "Body template",
    "Mustache with event, eventJson (the event as a JSON string) and eventMarkdown (a sentence).",
    type="textfield",
    placeholder='{"text": "{{event.featureName}}: {{event.type}}"}',
    check=find_template_problems,
)


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider. ``label`` begins the outcomes of its deliveries.

    ``build`` makes the request of an event from all parameters, secrets included.
    """

    name: str
    display_name: str
    label: str
    description: str
    parameters: tuple[Parameter, ...]
    events: tuple[str, ...]
    build: Callable[[dict[str, Any], Message], Outgoing | Mail]
    tag_types: tuple[str, ...] = ()

    @property
    def sensitive(self) -> frozenset[str]:
        return frozenset(parameter.name for parameter in self.parameters if parameter.sensitive)

    def make_request(self, parameters: dict[str, Any], message: Message) -> Outgoing | Mail:
        request = self.build(parameters, message)
        if isinstance(request, Outgoing):
            add_custom_headers(request, str(parameters.get(CUSTOM_HEADERS.name) or ""))
        return request

    def document(self) -> dict[str, Any]:
        """All but the parameters, as in the API."""
        record: dict[str, Any] = {
            "name": self.name,
            "displayName": self.display_name,
            "description": self.description,
            "documentationUrl": "/api/docs/createAddon/",
            "events": list(self.events),
        }
        if self.tag_types:
            record["tagTypes"] = [
                {"name": name, "description": self.display_name, "icon": ""} for name in self.tag_types
            ]
        return record
