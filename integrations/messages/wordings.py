"""An event as a sentence in Markdown, in the reference's words, with links to this installation."""

import re
from typing import Any, NamedTuple

from django.urls import reverse

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.sentences import make_sentence
from flagadmin.core.server import background_tasks
from projects.console import flag_url, project_url
from projects.history.change_links import make_comparison_url
from projects.history.rewind import TYPES

_IN_PROJECT = " in project *{project}*"
_IN_ENVIRONMENT = " for the *{environment}* environment"

SENTENCES = {
    "feature-created": "*{user}* created *{flag}*",
    "feature-archived": "*{user}* archived *{name}*",
    "feature-revived": "*{user}* revived *{flag}*",
    "feature-completed": "*{flag}* was marked as completed",
    "feature-stale-on": "*{user}* marked *{flag}* as stale",
    "feature-stale-off": "*{user}* removed the stale marking on *{flag}*",
    "feature-metadata-updated": "*{user}* updated *{flag}* metadata",
    "feature-tagged": "*{user}* tagged *{flag}* with *{tag}*",
    "feature-untagged": "*{user}* untagged *{flag}* with *{tag}*",
    "feature-environment-enabled": "*{user}* enabled *{flag}*" + _IN_ENVIRONMENT,
    "feature-environment-disabled": "*{user}* disabled *{flag}*" + _IN_ENVIRONMENT,
    "feature-strategy-add": "*{user}* added strategy *{strategy}* to *{flag}*" + _IN_ENVIRONMENT,
    "feature-strategy-remove": "*{user}* removed strategy *{strategy}* from *{flag}*" + _IN_ENVIRONMENT,
}
"""Each is followed by its project."""

_STRATEGY_UPDATE = (
    "*{user}* updated *{flag}* in project *{project}* by updating strategy *{strategy}* in *{environment}*"
)

OPERATORS = {
    "IN": "is one of",
    "NOT_IN": "is not one of",
    "STR_CONTAINS": "is a string that contains",
    "STR_STARTS_WITH": "is a string that starts with",
    "STR_ENDS_WITH": "is a string that ends with",
    "NUM_EQ": "is a number equal to",
    "NUM_GT": "is a number greater than",
    "NUM_GTE": "is a number greater than or equal to",
    "NUM_LT": "is a number less than",
    "NUM_LTE": "is a number less than or equal to",
    "DATE_AFTER": "is a date after",
    "DATE_BEFORE": "is a date before",
    "SEMVER_EQ": "is a SemVer equal to",
    "SEMVER_GT": "is a SemVer greater than",
    "SEMVER_LT": "is a SemVer less than",
}


def markdown(event: AuditEvent) -> str:
    names = _list_names(event)
    if event.type == "feature-strategy-update":
        changes = "; ".join(_list_strategy_changes(event.before or {}, event.after or {}))
        return f"{_STRATEGY_UPDATE.format(**names)} {defuse(changes)}".rstrip()
    if event.type in SENTENCES:
        return (SENTENCES[event.type] + _IN_PROJECT).format(**names)
    return f"*{names['user']}* {defuse(make_sentence(event))}"


def defuse(text: str) -> str:
    """A text of users that makes no links, and no lines, in Markdown."""
    return " ".join(text.splitlines()).replace("](", "] (")


class Link(NamedTuple):
    label: str
    url: str


def links(event: AuditEvent) -> list[Link]:
    """Lists the links: first the subject of the event; then the change, and how to undo it."""
    listed = [_link_subject(event)]
    if event.feature and event.project and event.pk and event.type in TYPES:
        if changes := make_comparison_url(AuditEvent.objects.filter(pk=event.pk)):
            listed.append(Link("Who changes", absolute(changes)))
        listed.append(Link("Undo…", absolute(reverse("change-revert", args=[event.pk]))))
    return listed


def _link_subject(event: AuditEvent) -> Link:
    if event.project and event.type.startswith("change-") and (event.subject or "").isdecimal():
        request = reverse("change-request", args=[event.project, event.subject])
        return Link("Change request", absolute(request))
    if event.project and event.feature and event.type not in ("feature-archived", "feature-deleted"):
        return Link("Flag", absolute(flag_url(event.project, event.feature)))
    if event.project:
        return Link("Project", absolute(project_url(event.project)))
    return Link("Activity", absolute(reverse("activity")))


def plain_text(text: str) -> str:
    """Markdown of a sentence without links and emphasis."""
    return re.sub(r"\[([^\]]*)\]\([^)\s]*\)", r"\1", text).replace("*", "")


def absolute(path: str) -> str:
    return f"{background_tasks.public_url}{path}"


def _list_names(event: AuditEvent) -> dict[str, str]:
    after = event.after if isinstance(event.after, dict) else {}
    before = event.before if isinstance(event.before, dict) else {}
    document = after or before
    name, project = event.feature or "", event.project or ""
    return {
        "user": defuse(event.actor_name),
        "name": name,
        "flag": f"[{name}]({absolute(flag_url(project, name))})" if name and project else name,
        "project": f"[{project}]({absolute(project_url(project))})" if project else "",
        "environment": event.environment or "",
        "strategy": defuse(str(before.get("title") or document.get("title") or document.get("name") or "")),
        "tag": defuse(f"{document.get('type', '')}:{document.get('value', '')}"),
    }


def _list_strategy_changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    parts = []
    old, new = ((document.get("parameters") or {}).get("rollout") for document in (before, after))
    if old != new:
        parts.append(f"rollout from {old}% to {new}%")
    for key, opening, closing, write in (
        ("constraints", "[", "]", _describe_constraint),
        ("segments", "(", ")", str),
    ):
        old, new = (document.get(key) or [] for document in (before, after))
        if old != new:
            texts = [
                f"{opening}{(', ' if write is _describe_constraint else ',').join(map(write, values))}{closing}"
                if values
                else f"empty set of {key}"
                for values in (old, new)
            ]
            parts.append(f"{key} from {texts[0]} to {texts[1]}")
    return parts


def _describe_constraint(constraint: dict[str, Any]) -> str:
    negated = "not " if constraint.get("inverted") else ""
    operator = OPERATORS.get(constraint["operator"], constraint["operator"])
    values = constraint.get("values") or []
    value = f"({','.join(values)})" if values else constraint.get("value", "")
    return f"{constraint['contextName']} {negated}{operator} {value}"
