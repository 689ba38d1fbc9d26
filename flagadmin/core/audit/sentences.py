"""Describes an audit event in a sentence without its actor: "turned on apple-pay in production"."""

import re

from django.utils.text import capfirst

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent

_SENTENCES: dict[str, str] = {
    E.PROJECT_CREATED: "created project {project}",
    E.PROJECT_UPDATED: "changed the settings of project {project}",
    E.PROJECT_ARCHIVED: "archived project {project}",
    E.PROJECT_REVIVED: "revived project {project}",
    E.PROJECT_DELETED: "deleted project {project}",
    E.PROJECT_ENVIRONMENT_ADDED: "added {environment} to project {project}",
    E.PROJECT_ENVIRONMENT_REMOVED: "removed {environment} from project {project}",
    E.PROJECT_ENVIRONMENT_UPDATED: "changed the settings of {environment} in project {project}",
    E.DEFAULT_STRATEGY_UPDATED: "changed the default strategy of {project} in {environment}",
    E.ENVIRONMENT_CREATED: "created environment {environment}",
    E.ENVIRONMENT_UPDATED: "changed environment {environment}",
    E.ENVIRONMENT_DELETED: "deleted environment {environment}",
    E.FEATURE_CREATED: "created flag {feature}",
    E.FEATURE_METADATA_UPDATED: "changed the description of flag {feature}",
    E.FEATURE_STALE_ON: "marked flag {feature} as stale",
    E.FEATURE_STALE_OFF: "marked flag {feature} as not stale",
    E.FEATURE_ARCHIVED: "archived flag {feature}",
    E.FEATURE_REVIVED: "revived flag {feature}",
    E.FEATURE_DELETED: "deleted flag {feature}",
    E.FEATURE_COMPLETED: "marked flag {feature} as completed",
    E.FEATURE_UNCOMPLETED: "marked flag {feature} as not completed",
    E.CODE_REFERENCES_REPORTED: "reported where flags are in the code of {subject}",
    E.FEATURE_PROJECT_CHANGE: "moved flag {feature} to project {project}",
    E.FEATURE_ENVIRONMENT_ENABLED: "turned on {feature} in {environment}",
    E.FEATURE_ENVIRONMENT_DISABLED: "turned off {feature} in {environment}",
    E.FEATURE_ENVIRONMENT_VARIANTS_UPDATED: "changed the variants of {feature} in {environment}",
    E.FEATURE_STRATEGY_ADD: "added a strategy to {feature} in {environment}",
    E.FEATURE_STRATEGY_UPDATE: "changed a strategy of {feature} in {environment}",
    E.FEATURE_STRATEGY_REMOVE: "removed a strategy from {feature} in {environment}",
    E.FEATURE_STRATEGY_ORDER_CHANGED: "reordered the strategies of {feature} in {environment}",
    E.FEATURE_TAGGED: "tagged flag {feature}",
    E.FEATURE_UNTAGGED: "removed a tag from flag {feature}",
    E.FEATURE_DEPENDENCY_ADDED: "added a parent to flag {feature}",
    E.FEATURE_DEPENDENCY_REMOVED: "removed a parent from flag {feature}",
    E.FEATURE_LINK_ADDED: "added a link to flag {feature}",
    E.FEATURE_LINK_UPDATED: "changed a link of flag {feature}",
    E.FEATURE_LINK_REMOVED: "removed a link from flag {feature}",
    E.FEATURE_PAYLOAD_SCHEMA_UPDATED: "changed the payload schema of flag {feature}",
    E.SEGMENT_LIST_SOURCE_UPDATED: "changed the source of the list of segment {subject}",
    E.SEGMENT_LIST_NOT_FETCHED: "could not keep the list of segment {subject} in step",
    E.FEATURE_FAVORITED: "added flag {feature} to favorites",
    E.FEATURE_UNFAVORITED: "removed flag {feature} from favorites",
    E.PROJECT_FAVORITED: "added project {project} to favorites",
    E.PROJECT_UNFAVORITED: "removed project {project} from favorites",
    E.FEATURES_IMPORTED: "imported flags into {project} / {environment}",
    E.FEATURES_EXPORTED: "exported flags from {environment}",
    E.FEATURE_IMPORTED: "imported flag {feature} into {environment}",
    E.IMPORT_UNDONE: "undid an import into {project} / {environment}",
    E.INSTALLATION_MOVED: "moved an installation here from {subject}",
    E.FEATURES_PROMOTED: "promoted flags to {project} / {environment}",
    E.FEATURE_PROMOTED: "promoted flag {feature} to {environment}",
    E.PROMOTION_UNDONE: "undid a promotion to {project} / {environment}",
    E.EXPECTATION_OVERRIDDEN: "broke what {subject} expects of {feature} in {environment}",
    E.ANALYSIS_CREATED: "started analysis {subject} of {feature} in {environment}",
    E.ANALYSIS_DELETED: "deleted analysis {subject} of {feature} in {environment}",
    E.ADDON_CREATED: "created integration {subject}",
    E.ADDON_UPDATED: "changed integration {subject}",
    E.ADDON_DELETED: "deleted integration {subject}",
    E.SIGNAL_SOURCE_CREATED: "created source of signals {subject}",
    E.SIGNAL_SOURCE_UPDATED: "changed source of signals {subject}",
    E.SIGNAL_SOURCE_DELETED: "deleted source of signals {subject}",
    E.CALENDAR_FEED_CREATED: "created an address for the calendar of {subject}",
    E.CALENDAR_FEED_DELETED: "deleted the calendar of {subject}",
    E.SIGNAL_RECEIVED: "received a signal from {subject} about {feature} in {environment}",
    E.CHANGE_REQUESTS_CONFIGURED: "changed who must approve changes of {environment} in project {project}",
    E.CHANGE_REQUEST_CREATED: "began change request {subject} for {environment}",
    E.CHANGE_REQUEST_DISCARDED: "discarded change request {subject} for {environment}",
    E.CHANGE_REQUEST_TITLE_UPDATED: "changed the title of change request {subject}",
    E.CHANGE_REQUEST_REVIEWERS_UPDATED: "changed who is asked to review change request {subject}",
    E.CHANGE_REQUEST_COMMENT_ADDED: "commented on change request {subject}",
    E.CHANGE_ADDED: "added a change to change request {subject}",
    E.CHANGE_EDITED: "edited a change of change request {subject}",
    E.CHANGE_DISCARDED: "removed a change from change request {subject}",
    E.CHANGE_REQUEST_SENT_TO_REVIEW: "sent change request {subject} ({environment}) for review",
    E.CHANGE_REQUEST_APPROVAL_ADDED: "approved change request {subject} for {environment}",
    E.CHANGE_REQUEST_APPROVED: "gave change request {subject} its last approval",
    E.CHANGE_REQUEST_REJECTED: "rejected change request {subject} for {environment}",
    E.CHANGE_REQUEST_CANCELLED: "cancelled change request {subject} for {environment}",
    E.CHANGE_REQUEST_APPLIED: "applied change request {subject} to {environment}",
    E.CHANGE_REQUEST_SCHEDULED: "scheduled change request {subject} for {environment}",
    E.CHANGE_REQUEST_UNSCHEDULED: "cancelled the schedule of change request {subject}",
    E.CHANGE_REQUEST_SCHEDULE_SUSPENDED: "suspended the schedule of change request {subject}",
    E.CHANGE_REQUEST_SCHEDULE_FAILED: "could not apply change request {subject} to {environment} as scheduled",
    E.CHANGE_REQUEST_APPLIED_AS_SCHEDULED: "applied change request {subject} to {environment} as scheduled",
    E.CHANGE_REQUEST_SKIPPED: "changed {feature} in {environment} without a change request",
    E.RELEASE_PLAN_TEMPLATE_CREATED: "created release template {subject}",
    E.RELEASE_PLAN_TEMPLATE_UPDATED: "changed release template {subject}",
    E.RELEASE_PLAN_TEMPLATE_ARCHIVED: "archived release template {subject}",
    E.RELEASE_PLAN_TEMPLATE_DELETED: "deleted release template {subject}",
    E.RELEASE_PLAN_ADDED: "added release plan {subject} to {feature} in {environment}",
    E.RELEASE_PLAN_REMOVED: "removed release plan {subject} from {feature} in {environment}",
    E.RELEASE_PLAN_MILESTONE_STARTED: "started milestone {subject} of {feature} in {environment}",
    E.RELEASE_PLAN_PAUSED: "paused release plan {subject} of {feature} in {environment}",
    E.RELEASE_PLAN_RESUMED: "resumed release plan {subject} of {feature} in {environment}",
    E.RELEASE_PLAN_COMPLETED: "completed release plan {subject} of {feature} in {environment}",
    E.MILESTONE_STRATEGY_UPDATED: "changed a strategy of milestone {subject} of {feature} in {environment}",
    E.MILESTONE_PROGRESSION_CHANGED: "changed what follows milestone {subject} of {feature} in {environment}",
    E.SAFEGUARD_CHANGED: "changed safeguard {subject} of {feature} in {environment}",
    E.SAFEGUARD_DELETED: "removed safeguard {subject} from {feature} in {environment}",
    E.METRIC_CHART_CHANGED: "changed the chart {subject} of impact metrics",
    E.METRIC_CHART_DELETED: "removed the chart {subject} of impact metrics",
    E.FEATURE_REVERTED: "reverted flag {feature} to its state of {subject}",
    E.USER_LOGGED_IN: "logged in",
    E.USER_LOGIN_FAILED: "rejected a login as {subject} from {address}",
    E.USER_LOGGED_OUT_EVERYWHERE: "logged {subject} out everywhere",
    E.USER_SESSION_ENDED: "ended a session of {subject}",
    E.USER_SECOND_FACTOR_ADDED: "added a second factor for {subject}",
    E.USER_SECOND_FACTOR_REMOVED: "removed a second factor of {subject}",
    E.USER_RECOVERY_CODES_CREATED: "made recovery codes for {subject}",
    E.USER_CONFIRMED: "confirmed that the account {subject} is another person's",
    E.USER_PASSWORD_CHANGED: "changed the password of {subject}",
    E.USER_IDENTITY_LINKED: "linked {subject} with the identity provider",
    E.USER_IDENTITY_UNLINKED: "unlinked {subject} from the identity provider",
    E.PROJECT_ACCESS_ADDED: "granted {subject} access to project {project}",
    E.PROJECT_ACCESS_UPDATED: "changed the access of {subject} to project {project}",
    E.PROJECT_ACCESS_REMOVED: "revoked the access of {subject} to project {project}",
    E.PUBLIC_SIGNUP_TOKEN_CREATED: "created the invite link {subject}",
    E.PUBLIC_SIGNUP_TOKEN_UPDATED: "changed the invite link {subject}",
    E.PUBLIC_SIGNUP_TOKEN_USER_ADDED: "signed up with the invite link {subject}",
    E.EVENTS_PRUNED: "removed {subject} old events",
    E.SETTING_UPDATED: "changed {subject} of the installation",
    E.PAT_CREATED: "created the personal token {subject}",
    E.PAT_DELETED: "revoked the personal token {subject}",
    E.API_TOKEN_DELETED: "revoked the API token {subject}",
    E.API_TOKEN_EXPIRING: "announced that the API token {subject} expires soon",
    E.STRATEGY_CREATED: "created strategy type {subject}",
    E.STRATEGY_UPDATED: "changed strategy type {subject}",
    E.STRATEGY_DELETED: "deleted strategy type {subject}",
    E.STRATEGY_DEPRECATED: "deprecated strategy type {subject}",
    E.STRATEGY_REACTIVATED: "reactivated strategy type {subject}",
}
_REVERTED_CHANGE = "reverted a change of flag {feature}"
_LABELS: dict[str, str] = {
    E.CODE_REFERENCES_REPORTED: "reported where flags are in code",
    E.INSTALLATION_MOVED: "moved an installation here",
    E.FEATURE_REVERTED: "reverted a flag to an earlier state",
    E.EXPECTATION_OVERRIDDEN: "broke what a saved context expects of a flag",
    E.SIGNAL_RECEIVED: "received a signal about a flag",
    E.CALENDAR_FEED_CREATED: "created an address for a calendar",
    E.CALENDAR_FEED_DELETED: "deleted a calendar",
    E.SETTING_UPDATED: "changed a setting of the installation",
    E.EVENTS_PRUNED: "removed old events",
    E.USER_LOGIN_FAILED: "rejected a login",
}
"""Labels of events whose sentence does not yield one."""
_NOUNS = (
    "project|environment|flag|feature type|segment|context field|saved context|strategy type|tag type|tag"
    "|change request|release plan|release template|milestone|safeguard|chart|integration|source of signals"
    "|application|analysis|user|service account|group|role|API token|personal token|invite link"
)
_WITH_AN = ("environment", "integration", "application", "analysis", "API token", "invite link")
_NAMED = re.compile(rf"(?:the )?\b({_NOUNS}) \{{\w+\}}")
_UNNAMED = {
    "project": "a project",
    "environment": "an environment",
    "feature": "a flag",
    "subject": "somebody",
}
_VERBS = {"created": "created", "updated": "changed", "deleted": "deleted"}


def find_template(event_type: str) -> str:
    """The template of a type. Without one, it is derived from the type, such as ``tag-type-created``."""
    written = _SENTENCES.get(event_type)
    if written is None:
        thing, _, verb = event_type.rpartition("-")
        written = f"{_VERBS.get(verb, verb)} {thing.replace('-', ' ').replace('api', 'API')} {{subject}}"
    return written


def make_label(event_type: str) -> str:
    """Describes any event of this type, such as ``Turned on a flag``."""
    text = _LABELS.get(event_type) or find_template(event_type)
    text = text.replace("{project} / ", "")
    text = re.sub(r" (in|for) \{environment\}| \(\{environment\}\)", "", text)
    text = _NAMED.sub(lambda named: f"{'an' if named[1] in _WITH_AN else 'a'} {named[1]}", text)
    return capfirst(text.format(**_UNNAMED))


def read_address(event: AuditEvent) -> str:
    """Reads the address of a failed login."""
    after = event.after if isinstance(event.after, dict) else {}
    return str(after.get("address") or "an unknown address")


def make_sentence(event: AuditEvent) -> str:
    takes_back = event.type == E.FEATURE_REVERTED and event.subject is None
    return (
        (_REVERTED_CHANGE if takes_back else find_template(event.type))
        .format(
            project=event.project or "no project",
            environment=event.environment or "every environment",
            feature=event.feature or "",
            subject=event.subject or "",
            address=read_address(event),
        )
        .strip()
    )
