"""What can be integrated: the parameters of each provider, with the reference's names, and the events offered."""

from dataclasses import asdict, dataclass
from typing import Any

MASK = "*****"
"""Stands for a sensitive value that is stored. Sent back, it keeps the value."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """``type``: url, text, or textfield (several lines)."""

    name: str
    displayName: str
    type: str
    description: str
    required: bool = False
    sensitive: bool = False
    placeholder: str = ""


@dataclass(frozen=True, slots=True)
class Provider:
    name: str
    display_name: str
    label: str
    description: str
    parameters: tuple[Parameter, ...]
    events: tuple[str, ...]
    tag_types: tuple[str, ...] = ()

    @property
    def sensitive(self) -> frozenset[str]:
        return frozenset(parameter.name for parameter in self.parameters if parameter.sensitive)

    def document(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "name": self.name,
            "displayName": self.display_name,
            "description": self.description,
            "documentationUrl": "/api/docs/createAddon/",
            "parameters": [asdict(parameter) for parameter in self.parameters],
            "events": list(self.events),
        }
        if self.tag_types:
            record["tagTypes"] = [
                {"name": name, "description": self.display_name, "icon": ""} for name in self.tag_types
            ]
        return record


_CUSTOM_HEADERS = Parameter(
    "customHeaders",
    "Extra HTTP headers",
    "textfield",
    'A JSON object, such as {"X-Team": "checkout"}.',
    sensitive=True,
    placeholder='{"X-Team": "checkout"}',
)
_TEMPLATE = Parameter(
    "bodyTemplate",
    "Body template",
    "textfield",
    "Mustache with event, eventJson (the event as a JSON string) and eventMarkdown (a sentence).",
    placeholder='{"text": "{{event.featureName}}: {{event.type}}"}',
)

_FLAG_EVENTS = (
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
_REQUEST_EVENTS = (
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
_WEBHOOK_ONLY = ("feature-completed", "feature-variants-updated", "feature-tagged", "feature-untagged")
_WITHOUT_VARIANTS = tuple(name for name in _FLAG_EVENTS if name != "feature-environment-variants-updated")

PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider(
            "webhook",
            "Webhook",
            "Webhook request",
            "Sends each event as an HTTP POST to a URL of yours.",
            (
                Parameter(
                    "url", "Webhook URL", "url", "Each event is sent there.", required=True, sensitive=True
                ),
                Parameter(
                    "contentType", "Content-Type", "text", "Of the body.", placeholder="application/json"
                ),
                Parameter("authorization", "Authorization", "text", "Header of that name.", sensitive=True),
                _CUSTOM_HEADERS,
                _TEMPLATE,
            ),
            (*_WITHOUT_VARIANTS, *_WEBHOOK_ONLY, *_REQUEST_EVENTS),
        ),
        Provider(
            "teamsworkflow",
            "Microsoft Teams - Workflow",
            "Teams webhook request",
            "Posts a card for each event to a channel of Microsoft Teams, by a workflow.",
            (
                Parameter(
                    "url",
                    "Workflow URL",
                    "url",
                    "Of a workflow that posts what it gets.",
                    required=True,
                    sensitive=True,
                ),
                _CUSTOM_HEADERS,
            ),
            (
                *_WITHOUT_VARIANTS,
                "feature-variants-updated",
                *_REQUEST_EVENTS,
                "change-edited",
                "change-request-rejected",
            ),
        ),
        Provider(
            "datadog",
            "Datadog",
            "Datadog Events API request",
            "Adds each event to the event stream of Datadog.",
            (
                Parameter(
                    "url",
                    "Datadog events URL",
                    "url",
                    "Of your site.",
                    placeholder="https://api.datadoghq.com/api/v1/events",
                ),
                Parameter(
                    "apiKey",
                    "Datadog API key",
                    "text",
                    "Of your organization.",
                    required=True,
                    sensitive=True,
                ),
                Parameter("sourceTypeName", "Source type name", "text", "To filter by in Datadog."),
                _CUSTOM_HEADERS,
                _TEMPLATE,
            ),
            _FLAG_EVENTS,
            ("datadog",),
        ),
        Provider(
            "new-relic",
            "New Relic",
            "New Relic Events API request",
            "Adds each event as a custom event (UnleashServiceEvent) to New Relic.",
            (
                Parameter(
                    "url",
                    "New Relic events URL",
                    "url",
                    "Of your account, with its number.",
                    required=True,
                    placeholder="https://insights-collector.newrelic.com/v1/accounts/1/events",
                ),
                Parameter(
                    "licenseKey",
                    "New Relic license key",
                    "text",
                    "Of your account.",
                    required=True,
                    sensitive=True,
                ),
                _CUSTOM_HEADERS,
                _TEMPLATE,
            ),
            _FLAG_EVENTS,
            ("new-relic",),
        ),
    )
}

DEPRECATED = {
    "slack": "This integration is deprecated. Use a webhook with a body template instead.",
    "teams": "This integration is deprecated. Please try the new Microsoft Teams - Workflow integration instead.",
}
