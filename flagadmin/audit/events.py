"""The types of audit events. Their names are those of the reference server."""

from enum import StrEnum


class EventType(StrEnum):
    PROJECT_CREATED = "project-created"
    PROJECT_UPDATED = "project-updated"
    PROJECT_ARCHIVED = "project-archived"
    PROJECT_REVIVED = "project-revived"
    PROJECT_DELETED = "project-deleted"
    PROJECT_ENVIRONMENT_ADDED = "project-environment-added"
    PROJECT_ENVIRONMENT_REMOVED = "project-environment-removed"
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
    FEATURE_FAVORITED = "feature-favorited"
    FEATURE_UNFAVORITED = "feature-unfavorited"
    PROJECT_FAVORITED = "project-favorited"
    PROJECT_UNFAVORITED = "project-unfavorited"
    FEATURES_IMPORTED = "features-imported"
    FEATURES_EXPORTED = "features-exported"
    FEATURE_IMPORTED = "feature-imported"
    IMPORT_UNDONE = "import-undone"
    FEATURE_REVERTED = "feature-reverted"

    SEGMENT_CREATED = "segment-created"
    SEGMENT_UPDATED = "segment-updated"
    SEGMENT_DELETED = "segment-deleted"
    CONTEXT_FIELD_CREATED = "context-field-created"
    CONTEXT_FIELD_UPDATED = "context-field-updated"
    CONTEXT_FIELD_DELETED = "context-field-deleted"
    SAVED_CONTEXT_CREATED = "saved-context-created"
    SAVED_CONTEXT_UPDATED = "saved-context-updated"
    SAVED_CONTEXT_DELETED = "saved-context-deleted"
    EXPECTATION_OVERRIDDEN = "expectation-overridden"
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
    SETTING_UPDATED = "setting-updated"
    PAT_CREATED = "pat-created"
    PAT_DELETED = "pat-deleted"


# Logging in and protecting one's account, reading flags, and ending the maintenance.
DURING_MAINTENANCE = frozenset(
    {
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
