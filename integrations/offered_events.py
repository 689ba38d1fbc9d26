"""The events that each provider offers, with the reference's names. An integration can have any others too."""

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

WEBHOOK = (*_WITHOUT_VARIANTS, *_WEBHOOK_ONLY, *_REQUEST_EVENTS)
TEAMS = (
    *_WITHOUT_VARIANTS,
    "feature-variants-updated",
    *_REQUEST_EVENTS,
    "change-edited",
    "change-request-rejected",
)
SLACK_APP = (*(name for name in _FLAG_EVENTS if name != "feature-updated"), *_REQUEST_EVENTS, *_SLACK_ONLY)
SLACK = (
    *_WITHOUT_VARIANTS,
    "feature-variants-updated",
    "release-plan-progressions-paused",
    "release-plan-progressions-resumed",
)
DATA = _FLAG_EVENTS
