"""The available providers: their parameters, with the reference's names, and their events."""

from dataclasses import asdict, dataclass
from typing import Any

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
_SLACK_ONLY = (
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
)

_OF_FLAGADMIN = ("api-token-expiring", "segment-list-not-fetched")

WEBHOOK = (*_WITHOUT_VARIANTS, *_WEBHOOK_ONLY, *_REQUEST_EVENTS, *_OF_FLAGADMIN)
TEAMS = (
    *_WITHOUT_VARIANTS,
    "feature-variants-updated",
    *_REQUEST_EVENTS,
    "change-edited",
    "change-request-rejected",
    *_OF_FLAGADMIN,
)
SLACK_APP = (
    *(name for name in _FLAG_EVENTS if name != "feature-updated"),
    *_REQUEST_EVENTS,
    *_SLACK_ONLY,
    *_OF_FLAGADMIN,
)
SLACK = (
    *_WITHOUT_VARIANTS,
    "feature-variants-updated",
    "release-plan-progressions-paused",
    "release-plan-progressions-resumed",
    *_OF_FLAGADMIN,
)
DATA = _FLAG_EVENTS


MASK = "*****"
"""Represents a stored sensitive value. Sending it back keeps the value."""


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

PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider(
            "webhook",
            "Webhook",
            "Webhook request",
            "Sends each event as an HTTP POST to your URL.",
            (
                Parameter(
                    "url", "Webhook URL", "url", "Each event is sent there.", required=True, sensitive=True
                ),
                Parameter(
                    "contentType",
                    "Content-Type",
                    "text",
                    "Of what is sent.",
                    placeholder="application/json",
                ),
                Parameter(
                    "authorization",
                    "Authorization",
                    "text",
                    "The header of each request.",
                    sensitive=True,
                ),
                _CUSTOM_HEADERS,
                _TEMPLATE,
            ),
            WEBHOOK,
        ),
        Provider(
            "slack-app",
            "Slack app",
            "Slack message",
            "Posts to Slack channels as your own app. Tags of type slack choose the channel.",
            (
                Parameter(
                    "accessToken",
                    "Access token",
                    "text",
                    "The app's bot token, with the scope chat:write: xoxb-…",
                    required=True,
                    sensitive=True,
                ),
                Parameter(
                    "defaultChannels",
                    "Channels",
                    "text",
                    "Separated by commas. For flags without a tag of type slack, and for all other events.",
                    placeholder="releases, checkout",
                ),
            ),
            SLACK_APP,
            ("slack",),
        ),
        Provider(
            "slack",
            "Slack incoming webhook",
            "Slack webhook request",
            "Posts to a Slack channel through an incoming webhook.",
            (
                Parameter(
                    "url",
                    "Slack webhook URL",
                    "url",
                    "https://hooks.slack.com/services/…",
                    required=True,
                    sensitive=True,
                ),
                Parameter("defaultChannel", "Channel", "text", "Only if the webhook may override it."),
                Parameter("username", "Name", "text", "Only if the webhook may override it."),
                Parameter(
                    "emojiIcon", "Emoji", "text", "Shown as its picture.", placeholder=":checkered_flag:"
                ),
                _CUSTOM_HEADERS,
            ),
            SLACK,
        ),
        Provider(
            "teamsworkflow",
            "Microsoft Teams - Workflow",
            "Teams webhook request",
            "Posts a card for each event to a Microsoft Teams channel through a workflow.",
            (
                Parameter(
                    "url",
                    "Workflow URL",
                    "url",
                    "The URL of a workflow that posts what it receives.",
                    required=True,
                    sensitive=True,
                ),
                _CUSTOM_HEADERS,
            ),
            TEAMS,
        ),
        Provider(
            "email",
            "Email",
            "Email",
            "Emails each event through this installation's SMTP server.",
            (
                Parameter(
                    "recipients",
                    "Recipients",
                    "text",
                    "Addresses, separated by commas.",
                    required=True,
                    placeholder="release-team@example.org",
                ),
                Parameter(
                    "subjectPrefix",
                    "Subject begins with",
                    "text",
                    "To sort by.",
                    placeholder="[flagadmin]",
                ),
            ),
            TEAMS,
        ),
        Provider(
            "datadog",
            "Datadog",
            "Datadog Events API request",
            "Adds each event to Datadog's event stream.",
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
                    "Your organization's API key.",
                    required=True,
                    sensitive=True,
                ),
                Parameter("sourceTypeName", "Source type name", "text", "For filtering in Datadog."),
                _CUSTOM_HEADERS,
                _TEMPLATE,
            ),
            DATA,
            ("datadog",),
        ),
        Provider(
            "new-relic",
            "New Relic",
            "New Relic Events API request",
            "Adds each event to New Relic as a custom event (UnleashServiceEvent).",
            (
                Parameter(
                    "url",
                    "New Relic events URL",
                    "url",
                    "Your account's URL, which contains its number.",
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
            DATA,
            ("new-relic",),
        ),
    )
}

DEPRECATED = {
    "teams": "This integration is deprecated. Please try the new Microsoft Teams - Workflow integration instead.",
}
