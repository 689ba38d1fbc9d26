"""The types of audit events: their names, as in the reference server, their sentences and their kinds."""

from collections.abc import Iterable
from enum import StrEnum, auto
from typing import Any

_VERBS = {"created": "created", "updated": "changed", "deleted": "deleted"}
_WITHOUT_LINKS = {"{flag}": "flag {feature}", "{strategy}": "a strategy", "{flags}": "flags"}


def says(
    sentence: str = "",
    *,
    page: str = "",
    added: str = "",
    label: str = "",
    name: str = "",
    in_maintenance: bool = False,
) -> tuple[Any, ...]:
    """All that is said of a type. Without a sentence, it is derived from the type, such as ``tag-type-created``.

    ``page``: the sentence on pages, if it is not the same with links and numbers; ``added``: if the subject is new.
    ``label`` describes any event of the type, if the sentence does not yield that. ``name``: the type, if it is not
    that of the member. ``in_maintenance``: logins, changes to one's own account protection, reads of flags,
    announcements, and the end of maintenance.
    """
    return name or auto(), sentence, page, added, label, in_maintenance


def derive_sentence(name: str) -> str:
    """The sentence of a type that has none."""
    thing, _, verb = name.rpartition("-")
    return f"{_VERBS.get(verb, verb)} {thing.replace('-', ' ').replace('api', 'API')} {{subject}}"


class EventType(StrEnum):
    """``page``, ``sentence`` (without links) and ``added`` have names and numbers as placeholders."""

    _value_: str
    sentence: str
    page: str
    added: str
    label: str
    in_maintenance: bool

    def __new__(
        cls,
        name: str,
        sentence: str = "",
        page: str = "",
        added: str = "",
        label: str = "",
        in_maintenance: bool = False,
    ) -> "EventType":
        member = str.__new__(cls, name)
        member._value_, member.label, member.in_maintenance = name, label, in_maintenance
        member.sentence = sentence or derive_sentence(name)
        member.page = page or member.sentence
        member.added = added or member.page
        for placeholder, words in _WITHOUT_LINKS.items():
            member.sentence = member.sentence.replace(placeholder, words)
        return member

    @staticmethod
    def _generate_next_value_(name: str, *_: Any) -> str:
        return name.lower().replace("_", "-")

    PROJECT_CREATED = says("created project {project}")
    PROJECT_UPDATED = says("changed the settings of project {project}")
    PROJECT_ARCHIVED = says("archived project {project}")
    PROJECT_REVIVED = says("revived project {project}")
    PROJECT_DELETED = says("deleted project {project}")
    PROJECT_ENVIRONMENT_ADDED = says("added {environment} to project {project}")
    PROJECT_ENVIRONMENT_REMOVED = says("removed {environment} from project {project}")
    PROJECT_ENVIRONMENT_UPDATED = says("changed the settings of {environment} in project {project}")
    DEFAULT_STRATEGY_UPDATED = says("changed the default strategy of {project} in {environment}")
    ENVIRONMENT_CREATED = says("created environment {environment}")
    ENVIRONMENT_UPDATED = says("changed environment {environment}")
    ENVIRONMENT_DELETED = says("deleted environment {environment}")

    FEATURE_CREATED = says("created {flag}")
    FEATURE_METADATA_UPDATED = says(
        "changed the description of flag {feature}", page="changed the {fields} of {feature}"
    )
    FEATURE_STALE_ON = says("marked {flag} as stale")
    FEATURE_STALE_OFF = says("marked flag {feature} as not stale", page="marked {feature} as active again")
    FEATURE_ARCHIVED = says("archived {flag}")
    FEATURE_REVIVED = says("revived {flag}")
    FEATURE_DELETED = says("deleted {flag}")
    FEATURE_COMPLETED = says("marked flag {feature} as completed")
    FEATURE_UNCOMPLETED = says("marked flag {feature} as not completed")
    CODE_REFERENCES_REPORTED = says(
        "reported where flags are in the code of {subject}", label="reported where flags are in code"
    )
    FEATURE_PROJECT_CHANGE = says(
        "moved flag {feature} to project {project}", page="moved {feature} from {old_project} to {project}"
    )
    FEATURE_ENVIRONMENT_ENABLED = says(
        "turned on {feature} in {environment}", page="turned {feature} on in {environment}"
    )
    FEATURE_ENVIRONMENT_DISABLED = says(
        "turned off {feature} in {environment}", page="turned {feature} off in {environment}"
    )
    FEATURE_ENVIRONMENT_VARIANTS_UPDATED = says("changed the variants of {feature} in {environment}")
    FEATURE_STRATEGY_ADD = says("added {strategy} to {feature} in {environment}")
    FEATURE_STRATEGY_UPDATE = says("changed {strategy} of {feature} in {environment}")
    FEATURE_STRATEGY_REMOVE = says("removed {strategy} from {feature} in {environment}")
    FEATURE_STRATEGY_ORDER_CHANGED = says(
        "reordered the strategies of {feature} in {environment}", name="strategy-order-changed"
    )
    FEATURE_TAGGED = says("tagged flag {feature}", page="tagged {feature} with {tag}")
    FEATURE_UNTAGGED = says("removed a tag from flag {feature}", page="removed the tag {tag} from {feature}")
    FEATURE_DEPENDENCY_ADDED = says(
        "added a parent to flag {feature}", page="made {feature} depend on {parent}"
    )
    FEATURE_DEPENDENCY_REMOVED = says(
        "removed a parent from flag {feature}", page="made {feature} independent of {parent}"
    )
    FEATURE_LINK_ADDED = says("added a link to flag {feature}", page="added the link {link} to {feature}")
    FEATURE_LINK_UPDATED = says(
        "changed a link of flag {feature}", page="changed the link {link} of {feature}"
    )
    FEATURE_LINK_REMOVED = says(
        "removed a link from flag {feature}", page="removed the link {link} from {feature}"
    )
    FEATURE_PAYLOAD_SCHEMA_UPDATED = says("changed the payload schema of {flag}")
    FEATURE_FAVORITED = says("added flag {feature} to favorites")
    FEATURE_UNFAVORITED = says("removed flag {feature} from favorites")
    PROJECT_FAVORITED = says("added project {project} to favorites")
    PROJECT_UNFAVORITED = says("removed project {project} from favorites")
    FEATURES_IMPORTED = says("imported {flags} into {project} / {environment}")
    FEATURES_EXPORTED = says("exported {flags} from {environment}", in_maintenance=True)
    FEATURE_IMPORTED = says(
        "imported flag {feature} into {environment}", page="changed {feature} in {environment} by an import"
    )
    IMPORT_UNDONE = says("undid an import into {project} / {environment}")
    INSTALLATION_MOVED = says("moved an installation here from {subject}", label="moved an installation here")
    FEATURES_PROMOTED = says(
        "promoted flags to {project} / {environment}",
        page="promoted {flags} from {source} to {environment} in {project}",
    )
    FEATURE_PROMOTED = says(
        "promoted flag {feature} to {environment}", page="promoted {feature} from {source} to {environment}"
    )
    PROMOTION_UNDONE = says("undid a promotion to {project} / {environment}")
    FEATURE_REVERTED = says(
        "reverted flag {feature} to its state of {subject}",
        page="restored the version of {subject} of {feature}",
        label="reverted a flag to an earlier state",
    )

    SEGMENT_CREATED = says()
    SEGMENT_UPDATED = says()
    SEGMENT_DELETED = says()
    SEGMENT_LIST_SOURCE_UPDATED = says("changed the source of the list of segment {subject}")
    SEGMENT_LIST_NOT_FETCHED = says("could not keep the list of segment {subject} in step")
    CONTEXT_FIELD_CREATED = says()
    CONTEXT_FIELD_UPDATED = says()
    CONTEXT_FIELD_DELETED = says()
    SAVED_CONTEXT_CREATED = says()
    SAVED_CONTEXT_UPDATED = says()
    SAVED_CONTEXT_DELETED = says()
    EXPECTATION_OVERRIDDEN = says(
        "broke what {subject} expects of {feature} in {environment}",
        label="broke what a saved context expects of a flag",
    )
    ANALYSIS_CREATED = says("started analysis {subject} of {feature} in {environment}")
    ANALYSIS_DELETED = says("deleted analysis {subject} of {feature} in {environment}")
    STRATEGY_CREATED = says("created strategy type {subject}")
    STRATEGY_UPDATED = says("changed strategy type {subject}")
    STRATEGY_DELETED = says("deleted strategy type {subject}")
    STRATEGY_DEPRECATED = says("deprecated strategy type {subject}")
    STRATEGY_REACTIVATED = says("reactivated strategy type {subject}")
    TAG_TYPE_CREATED = says()
    TAG_TYPE_UPDATED = says()
    TAG_TYPE_DELETED = says()
    TAG_CREATED = says()
    TAG_DELETED = says()
    FEATURE_TYPE_UPDATED = says()
    CHANGE_REQUESTS_CONFIGURED = says(
        "changed who must approve changes of {environment} in project {project}",
        name="change-request-configuration-updated",
    )
    CHANGE_REQUEST_CREATED = says("began change request {subject} for {environment}")
    CHANGE_REQUEST_DISCARDED = says("discarded change request {subject} for {environment}")
    CHANGE_REQUEST_TITLE_UPDATED = says("changed the title of change request {subject}")
    CHANGE_REQUEST_REVIEWERS_UPDATED = says(
        "changed who is asked to review change request {subject}",
        name="change-request-requested-approvers-updated",
    )
    CHANGE_REQUEST_COMMENT_ADDED = says("commented on change request {subject}")
    CHANGE_ADDED = says("added a change to change request {subject}")
    CHANGE_EDITED = says("edited a change of change request {subject}")
    CHANGE_DISCARDED = says("removed a change from change request {subject}")
    CHANGE_REQUEST_SENT_TO_REVIEW = says("sent change request {subject} ({environment}) for review")
    CHANGE_REQUEST_APPROVAL_ADDED = says("approved change request {subject} for {environment}")
    CHANGE_REQUEST_APPROVED = says("gave change request {subject} its last approval")
    CHANGE_REQUEST_REJECTED = says("rejected change request {subject} for {environment}")
    CHANGE_REQUEST_CANCELLED = says("cancelled change request {subject} for {environment}")
    CHANGE_REQUEST_APPLIED = says("applied change request {subject} to {environment}")
    CHANGE_REQUEST_SCHEDULED = says("scheduled change request {subject} for {environment}")
    CHANGE_REQUEST_UNSCHEDULED = says("cancelled the schedule of change request {subject}")
    CHANGE_REQUEST_SCHEDULE_SUSPENDED = says("suspended the schedule of change request {subject}")
    CHANGE_REQUEST_SCHEDULE_FAILED = says(
        "could not apply change request {subject} to {environment} as scheduled",
        name="change-request-scheduled-application-failure",
    )
    CHANGE_REQUEST_APPLIED_AS_SCHEDULED = says(
        "applied change request {subject} to {environment} as scheduled",
        name="change-request-scheduled-application-success",
    )
    CHANGE_REQUEST_SKIPPED = says("changed {feature} in {environment} without a change request")
    RELEASE_PLAN_TEMPLATE_CREATED = says("created release template {subject}")
    RELEASE_PLAN_TEMPLATE_UPDATED = says("changed release template {subject}")
    RELEASE_PLAN_TEMPLATE_ARCHIVED = says("archived release template {subject}")
    RELEASE_PLAN_TEMPLATE_DELETED = says("deleted release template {subject}")
    RELEASE_PLAN_ADDED = says("added release plan {subject} to {feature} in {environment}")
    RELEASE_PLAN_REMOVED = says("removed release plan {subject} from {feature} in {environment}")
    RELEASE_PLAN_MILESTONE_STARTED = says("started milestone {subject} of {feature} in {environment}")
    RELEASE_PLAN_PAUSED = says(
        "paused release plan {subject} of {feature} in {environment}", name="release-plan-progressions-paused"
    )
    RELEASE_PLAN_RESUMED = says(
        "resumed release plan {subject} of {feature} in {environment}",
        name="release-plan-progressions-resumed",
    )
    RELEASE_PLAN_COMPLETED = says("completed release plan {subject} of {feature} in {environment}")
    MILESTONE_STRATEGY_UPDATED = says(
        "changed a strategy of milestone {subject} of {feature} in {environment}",
        name="release-plan-milestone-strategy-updated",
    )
    MILESTONE_PROGRESSION_CHANGED = says(
        "changed what follows milestone {subject} of {feature} in {environment}"
    )
    SAFEGUARD_CHANGED = says(
        "changed safeguard {subject} of {feature} in {environment}",
        added="added safeguard {subject} to {feature} in {environment}",
    )
    SAFEGUARD_DELETED = says("removed safeguard {subject} from {feature} in {environment}")
    METRIC_CHART_CHANGED = says(
        "changed the chart {subject} of impact metrics",
        page="changed the chart {subject}",
        added="added the chart {subject}",
        name="impact-metrics-config-changed",
    )
    METRIC_CHART_DELETED = says(
        "removed the chart {subject} of impact metrics",
        page="removed the chart {subject}",
        name="impact-metrics-config-deleted",
    )
    ADDON_CREATED = says("created integration {subject}", name="addon-config-created")
    ADDON_UPDATED = says("changed integration {subject}", name="addon-config-updated")
    ADDON_DELETED = says("deleted integration {subject}", name="addon-config-deleted")
    SIGNAL_SOURCE_CREATED = says("created source of signals {subject}")
    SIGNAL_SOURCE_UPDATED = says("changed source of signals {subject}")
    SIGNAL_SOURCE_DELETED = says("deleted source of signals {subject}")
    SIGNAL_RECEIVED = says(
        "received a signal from {subject} about {feature} in {environment}",
        label="received a signal about a flag",
    )
    CALENDAR_FEED_CREATED = says(
        "created an address for the calendar of {subject}", label="created an address for a calendar"
    )
    CALENDAR_FEED_DELETED = says("deleted the calendar of {subject}", label="deleted a calendar")
    APPLICATION_UPDATED = says()
    APPLICATION_DELETED = says()

    USER_CREATED = says()
    USER_UPDATED = says()
    USER_DELETED = says()
    USER_LOGGED_IN = says("logged in", in_maintenance=True)
    USER_LOGIN_FAILED = says(
        "rejected a login as {subject} from {address}", label="rejected a login", in_maintenance=True
    )
    USER_LOGGED_OUT_EVERYWHERE = says("logged {subject} out everywhere", in_maintenance=True)
    USER_SESSION_ENDED = says("ended a session of {subject}", in_maintenance=True)
    USER_SECOND_FACTOR_ADDED = says("added a second factor for {subject}", in_maintenance=True)
    USER_SECOND_FACTOR_REMOVED = says("removed a second factor of {subject}")
    USER_RECOVERY_CODES_CREATED = says("made recovery codes for {subject}", in_maintenance=True)
    USER_CONFIRMED = says("confirmed that the account {subject} is another person's")
    USER_PASSWORD_CHANGED = says("changed the password of {subject}", in_maintenance=True)
    USER_IDENTITY_LINKED = says("linked {subject} with the identity provider")
    USER_IDENTITY_UNLINKED = says("unlinked {subject} from the identity provider")
    SERVICE_ACCOUNT_CREATED = says()
    SERVICE_ACCOUNT_UPDATED = says()
    SERVICE_ACCOUNT_DELETED = says()
    GROUP_CREATED = says()
    GROUP_UPDATED = says()
    GROUP_DELETED = says()
    ROLE_CREATED = says()
    ROLE_UPDATED = says()
    ROLE_DELETED = says()
    PROJECT_ACCESS_ADDED = says(
        "granted {subject} access to project {project}",
        page="gave {subject} the {roles} in project {project}",
    )
    PROJECT_ACCESS_UPDATED = says(
        "changed the access of {subject} to project {project}",
        page="changed the roles of {subject} in project {project}",
    )
    PROJECT_ACCESS_REMOVED = says(
        "revoked the access of {subject} to project {project}",
        page="removed {subject} from project {project}",
    )
    API_TOKEN_CREATED = says()
    API_TOKEN_UPDATED = says()
    API_TOKEN_DELETED = says("revoked the API token {subject}")
    API_TOKEN_EXPIRING = says("announced that the API token {subject} expires soon", in_maintenance=True)
    PUBLIC_SIGNUP_TOKEN_CREATED = says("created the invite link {subject}")
    PUBLIC_SIGNUP_TOKEN_UPDATED = says("changed the invite link {subject}")
    PUBLIC_SIGNUP_TOKEN_USER_ADDED = says("signed up with the invite link {subject}")
    SETTING_UPDATED = says(
        "changed {subject} of the installation",
        label="changed a setting of the installation",
        in_maintenance=True,
    )
    EVENTS_PRUNED = says("removed {subject} old events", label="removed old events")
    PAT_CREATED = says("created the personal token {subject}")
    PAT_DELETED = says("revoked the personal token {subject}")


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


def find_type(name: str) -> EventType | None:
    """None for a type of a later version."""
    try:
        return EventType(name)
    except ValueError:
        return None


def list_types(kind: str) -> list[str]:
    _, prefixes = KINDS[kind]
    return [event.value for event in EventType if event.value.startswith(prefixes)]


def group_types(types: Iterable[str]) -> dict[str, list[str]]:
    """Groups the types by the first kind that matches each. Leaves out kinds without types."""
    groups: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name in types:
        groups[next(kind for kind, (_, prefixes) in KINDS.items() if name.startswith(prefixes))].append(name)
    return {kind: names for kind, names in groups.items() if names}
