"""The types of audit events, named as in the reference server, and their subjects."""

from collections.abc import Iterable
from enum import StrEnum


class EventType(StrEnum):
    PROJECT_CREATED = "project-created"
    PROJECT_UPDATED = "project-updated"
    PROJECT_ARCHIVED = "project-archived"
    PROJECT_REVIVED = "project-revived"
    PROJECT_DELETED = "project-deleted"
    PROJECT_ENVIRONMENT_ADDED = "project-environment-added"
    PROJECT_ENVIRONMENT_REMOVED = "project-environment-removed"
    PROJECT_ENVIRONMENT_UPDATED = "project-environment-updated"
    DEFAULT_STRATEGY_UPDATED = "default-strategy-updated"
    ENVIRONMENT_CREATED = "environment-created"
    ENVIRONMENT_UPDATED = "environment-updated"
    ENVIRONMENT_DELETED = "environment-deleted"

    FEATURE_CREATED = "feature-created"
    FEATURE_METADATA_UPDATED = "feature-metadata-updated"
    FEATURE_STALE_ON = "feature-stale-on"
    FEATURE_STALE_OFF = "feature-stale-off"
    FEATURE_ARCHIVED = "feature-archived"
    FEATURE_REVIVED = "feature-revived"
    FEATURE_DELETED = "feature-deleted"
    FEATURE_COMPLETED = "feature-completed"
    FEATURE_UNCOMPLETED = "feature-uncompleted"
    CODE_REFERENCES_REPORTED = "code-references-reported"
    FEATURE_PROJECT_CHANGE = "feature-project-change"
    FEATURE_ENVIRONMENT_ENABLED = "feature-environment-enabled"
    FEATURE_ENVIRONMENT_DISABLED = "feature-environment-disabled"
    FEATURE_ENVIRONMENT_VARIANTS_UPDATED = "feature-environment-variants-updated"
    FEATURE_STRATEGY_ADD = "feature-strategy-add"
    FEATURE_STRATEGY_UPDATE = "feature-strategy-update"
    FEATURE_STRATEGY_REMOVE = "feature-strategy-remove"
    FEATURE_STRATEGY_ORDER_CHANGED = "strategy-order-changed"
    FEATURE_TAGGED = "feature-tagged"
    FEATURE_UNTAGGED = "feature-untagged"
    FEATURE_DEPENDENCY_ADDED = "feature-dependency-added"
    FEATURE_DEPENDENCY_REMOVED = "feature-dependency-removed"
    FEATURE_LINK_ADDED = "feature-link-added"
    FEATURE_LINK_UPDATED = "feature-link-updated"
    FEATURE_LINK_REMOVED = "feature-link-removed"
    FEATURE_PAYLOAD_SCHEMA_UPDATED = "feature-payload-schema-updated"
    FEATURE_FAVORITED = "feature-favorited"
    FEATURE_UNFAVORITED = "feature-unfavorited"
    PROJECT_FAVORITED = "project-favorited"
    PROJECT_UNFAVORITED = "project-unfavorited"
    FEATURES_IMPORTED = "features-imported"
    FEATURES_EXPORTED = "features-exported"
    FEATURE_IMPORTED = "feature-imported"
    IMPORT_UNDONE = "import-undone"
    INSTALLATION_MOVED = "installation-moved"
    FEATURES_PROMOTED = "features-promoted"
    FEATURE_PROMOTED = "feature-promoted"
    PROMOTION_UNDONE = "promotion-undone"
    FEATURE_REVERTED = "feature-reverted"

    SEGMENT_CREATED = "segment-created"
    SEGMENT_UPDATED = "segment-updated"
    SEGMENT_DELETED = "segment-deleted"
    SEGMENT_LIST_SOURCE_UPDATED = "segment-list-source-updated"
    SEGMENT_LIST_NOT_FETCHED = "segment-list-not-fetched"
    CONTEXT_FIELD_CREATED = "context-field-created"
    CONTEXT_FIELD_UPDATED = "context-field-updated"
    CONTEXT_FIELD_DELETED = "context-field-deleted"
    SAVED_CONTEXT_CREATED = "saved-context-created"
    SAVED_CONTEXT_UPDATED = "saved-context-updated"
    SAVED_CONTEXT_DELETED = "saved-context-deleted"
    EXPECTATION_OVERRIDDEN = "expectation-overridden"
    ANALYSIS_CREATED = "analysis-created"
    ANALYSIS_DELETED = "analysis-deleted"
    STRATEGY_CREATED = "strategy-created"
    STRATEGY_UPDATED = "strategy-updated"
    STRATEGY_DELETED = "strategy-deleted"
    STRATEGY_DEPRECATED = "strategy-deprecated"
    STRATEGY_REACTIVATED = "strategy-reactivated"
    TAG_TYPE_CREATED = "tag-type-created"
    TAG_TYPE_UPDATED = "tag-type-updated"
    TAG_TYPE_DELETED = "tag-type-deleted"
    TAG_CREATED = "tag-created"
    TAG_DELETED = "tag-deleted"
    FEATURE_TYPE_UPDATED = "feature-type-updated"
    CHANGE_REQUESTS_CONFIGURED = "change-request-configuration-updated"
    CHANGE_REQUEST_CREATED = "change-request-created"
    CHANGE_REQUEST_DISCARDED = "change-request-discarded"
    CHANGE_REQUEST_TITLE_UPDATED = "change-request-title-updated"
    CHANGE_REQUEST_REVIEWERS_UPDATED = "change-request-requested-approvers-updated"
    CHANGE_REQUEST_COMMENT_ADDED = "change-request-comment-added"
    CHANGE_ADDED = "change-added"
    CHANGE_EDITED = "change-edited"
    CHANGE_DISCARDED = "change-discarded"
    CHANGE_REQUEST_SENT_TO_REVIEW = "change-request-sent-to-review"
    CHANGE_REQUEST_APPROVAL_ADDED = "change-request-approval-added"
    CHANGE_REQUEST_APPROVED = "change-request-approved"
    CHANGE_REQUEST_REJECTED = "change-request-rejected"
    CHANGE_REQUEST_CANCELLED = "change-request-cancelled"
    CHANGE_REQUEST_APPLIED = "change-request-applied"
    CHANGE_REQUEST_SCHEDULED = "change-request-scheduled"
    CHANGE_REQUEST_UNSCHEDULED = "change-request-unscheduled"
    CHANGE_REQUEST_SCHEDULE_SUSPENDED = "change-request-schedule-suspended"
    CHANGE_REQUEST_SCHEDULE_FAILED = "change-request-scheduled-application-failure"
    CHANGE_REQUEST_APPLIED_AS_SCHEDULED = "change-request-scheduled-application-success"
    CHANGE_REQUEST_SKIPPED = "change-request-skipped"
    RELEASE_PLAN_TEMPLATE_CREATED = "release-plan-template-created"
    RELEASE_PLAN_TEMPLATE_UPDATED = "release-plan-template-updated"
    RELEASE_PLAN_TEMPLATE_ARCHIVED = "release-plan-template-archived"
    RELEASE_PLAN_TEMPLATE_DELETED = "release-plan-template-deleted"
    RELEASE_PLAN_ADDED = "release-plan-added"
    RELEASE_PLAN_REMOVED = "release-plan-removed"
    RELEASE_PLAN_MILESTONE_STARTED = "release-plan-milestone-started"
    RELEASE_PLAN_PAUSED = "release-plan-progressions-paused"
    RELEASE_PLAN_RESUMED = "release-plan-progressions-resumed"
    RELEASE_PLAN_COMPLETED = "release-plan-completed"
    MILESTONE_STRATEGY_UPDATED = "release-plan-milestone-strategy-updated"
    MILESTONE_PROGRESSION_CHANGED = "milestone-progression-changed"
    SAFEGUARD_CHANGED = "safeguard-changed"
    SAFEGUARD_DELETED = "safeguard-deleted"
    METRIC_CHART_CHANGED = "impact-metrics-config-changed"
    METRIC_CHART_DELETED = "impact-metrics-config-deleted"
    ADDON_CREATED = "addon-config-created"
    ADDON_UPDATED = "addon-config-updated"
    ADDON_DELETED = "addon-config-deleted"
    SIGNAL_SOURCE_CREATED = "signal-source-created"
    SIGNAL_SOURCE_UPDATED = "signal-source-updated"
    SIGNAL_SOURCE_DELETED = "signal-source-deleted"
    SIGNAL_RECEIVED = "signal-received"
    CALENDAR_FEED_CREATED = "calendar-feed-created"
    CALENDAR_FEED_DELETED = "calendar-feed-deleted"
    APPLICATION_UPDATED = "application-updated"
    APPLICATION_DELETED = "application-deleted"

    USER_CREATED = "user-created"
    USER_UPDATED = "user-updated"
    USER_DELETED = "user-deleted"
    USER_LOGGED_IN = "user-logged-in"
    USER_LOGIN_FAILED = "user-login-failed"
    USER_LOGGED_OUT_EVERYWHERE = "user-logged-out-everywhere"
    USER_SESSION_ENDED = "user-session-ended"
    USER_SECOND_FACTOR_ADDED = "user-second-factor-added"
    USER_SECOND_FACTOR_REMOVED = "user-second-factor-removed"
    USER_RECOVERY_CODES_CREATED = "user-recovery-codes-created"
    USER_CONFIRMED = "user-confirmed"
    USER_PASSWORD_CHANGED = "user-password-changed"
    USER_IDENTITY_LINKED = "user-identity-linked"
    USER_IDENTITY_UNLINKED = "user-identity-unlinked"
    SERVICE_ACCOUNT_CREATED = "service-account-created"
    SERVICE_ACCOUNT_UPDATED = "service-account-updated"
    SERVICE_ACCOUNT_DELETED = "service-account-deleted"
    GROUP_CREATED = "group-created"
    GROUP_UPDATED = "group-updated"
    GROUP_DELETED = "group-deleted"
    ROLE_CREATED = "role-created"
    ROLE_UPDATED = "role-updated"
    ROLE_DELETED = "role-deleted"
    PROJECT_ACCESS_ADDED = "project-access-added"
    PROJECT_ACCESS_UPDATED = "project-access-updated"
    PROJECT_ACCESS_REMOVED = "project-access-removed"
    API_TOKEN_CREATED = "api-token-created"
    API_TOKEN_UPDATED = "api-token-updated"
    API_TOKEN_DELETED = "api-token-deleted"
    API_TOKEN_EXPIRING = "api-token-expiring"
    PUBLIC_SIGNUP_TOKEN_CREATED = "public-signup-token-created"
    PUBLIC_SIGNUP_TOKEN_UPDATED = "public-signup-token-updated"
    PUBLIC_SIGNUP_TOKEN_USER_ADDED = "public-signup-token-user-added"
    SETTING_UPDATED = "setting-updated"
    EVENTS_PRUNED = "events-pruned"
    PAT_CREATED = "pat-created"
    PAT_DELETED = "pat-deleted"


# Logins, changes to one's own account protection, reads of flags, announcements, and the end of maintenance.
DURING_MAINTENANCE = frozenset(
    {
        EventType.API_TOKEN_EXPIRING,
        EventType.FEATURES_EXPORTED,
        EventType.SETTING_UPDATED,
        EventType.USER_LOGGED_IN,
        EventType.USER_LOGIN_FAILED,
        EventType.USER_LOGGED_OUT_EVERYWHERE,
        EventType.USER_SESSION_ENDED,
        EventType.USER_SECOND_FACTOR_ADDED,
        EventType.USER_RECOVERY_CODES_CREATED,
        EventType.USER_PASSWORD_CHANGED,
    }
)


KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "flags": ("Flags", ("feature-", "strategy-order", "expectation-", "analysis-")),
    "requests": ("Change requests", ("change-",)),
    "plans": ("Release plans", ("release-plan-", "milestone-", "safeguard-", "impact-metrics-")),
    "imports": (
        "Imports and promotions",
        ("features-", "feature-imported", "feature-promoted", "import-", "promotion-", "installation-"),
    ),
    "projects": ("Projects and environments", ("project-", "default-strategy", "environment-")),
    "access": (
        "People and access",
        ("user-", "service-account-", "group-", "role-", "project-access-", "api-token-", "pat-"),
    ),
    "vocabulary": (
        "Segments, fields and types",
        ("segment-", "context-field-", "strategy-", "tag-type-", "saved-context-"),
    ),
    "integrations": ("Integrations", ("addon-", "signal-", "calendar-")),
}
"""The label of each kind, and the prefixes of its types. A type may have several kinds."""


def list_types(kind: str) -> list[str]:
    _, prefixes = KINDS[kind]
    return [event.value for event in EventType if event.value.startswith(prefixes)]


def group_types(types: Iterable[str]) -> dict[str, list[str]]:
    """Groups the types by the first kind that matches each. Leaves out kinds without types."""
    groups: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name in types:
        groups[next(kind for kind, (_, prefixes) in KINDS.items() if name.startswith(prefixes))].append(name)
    return {kind: names for kind, names in groups.items() if names}
