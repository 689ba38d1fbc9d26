"""An event for receivers: as a document, and as a sentence in Markdown with links and the affected users."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.urls import reverse
from django.utils.functional import cached_property

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.sentences import make_sentence
from flagadmin.core.http.responses import iso
from flagadmin.core.server import background_tasks
from groups.models import User
from playground.comparison.compare import CHANGES, SWITCHES, Change
from playground.comparison.versions import ChangedPlace, Version, find_version_changes
from playground.engine.operators import OPERATORS
from projects.console import flag_url, project_url
from projects.history.change_links import make_comparison_url
from projects.history.queries import TYPES
from projects.models import Environment, Flag

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
"""The project follows each of them."""

_STRATEGY_UPDATE = (
    "*{user}* updated *{flag}* in project *{project}* by updating strategy *{strategy}* in *{environment}*"
)


def markdown(event: AuditEvent, author: str = "") -> str:
    names = _list_names(event) | {"user": defuse(author or event.actor_name)}
    if event.type == "feature-strategy-update":
        changes = "; ".join(_list_strategy_changes(event.before or {}, event.after or {}))
        return f"{_STRATEGY_UPDATE.format(**names)} {defuse(changes)}".rstrip()
    if event.type in SENTENCES:
        return (SENTENCES[event.type] + _IN_PROJECT).format(**names)
    return f"*{names['user']}* {defuse(make_sentence(event))}"


def defuse(text: str) -> str:
    """Makes a user's text safe for Markdown, without links or line breaks."""
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
    return Link("Audit log", absolute(reverse("activity")))


def plain_text(text: str) -> str:
    """A Markdown sentence without links and emphasis."""
    return re.sub(r"\[([^\]]*)\]\([^)\s]*\)", r"\1", text).replace("*", "")


def absolute(path: str) -> str:
    return f"{background_tasks.public_url}{path}"


def _list_names(event: AuditEvent) -> dict[str, str]:
    after = event.after if isinstance(event.after, dict) else {}
    before = event.before if isinstance(event.before, dict) else {}
    document = after or before
    name, project = event.feature or "", event.project or ""
    return {
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
    name = constraint["operator"]
    operator = (name in OPERATORS and OPERATORS[name].notice) or name
    values = constraint.get("values") or []
    value = f"({','.join(values)})" if values else constraint.get("value", "")
    return f"{constraint['contextName']} {negated}{operator} {value}"


@dataclass(frozen=True, slots=True)
class Effect:
    """``places``: the environments that the change may concern; ``more``: the number not compared."""

    places: tuple[ChangedPlace, ...] = ()
    more: int = 0

    def within(self, environments: Collection[str] | None) -> "Effect":
        """Returns the effect in these environments only; None means all."""
        if environments is None:
            return self
        return Effect(tuple(place for place in self.places if place.environment in environments), self.more)

    @property
    def is_nothing(self) -> bool:
        """Whether it is certain that no user's result changes."""
        return not self.more and all(
            place.counts is not None and not any(place.counts.values()) and not place.unmeasured
            for place in self.places
        )

    def sentence(self) -> str:
        """``In production, 4,012 of 10,000 generated users go off → on.`` "" if there is nothing to say."""
        return " ".join(filter(None, map(_say, self.places)))


def _say(place: ChangedPlace) -> str:
    if place.counts is None:
        return f"In {place.environment}, there are too many values in conditions to count who changes."
    parts = [
        f"{number:,} go {_say_where(change)}" for change, number in place.counts.items() if change in CHANGES
    ]
    if place.unmeasured:
        return f"In {place.environment}, who changes cannot be measured: {place.unmeasured[0]}."
    if not parts:
        return ""
    first, *others = parts
    first = first.replace(" go ", f" of {place.users:,} generated users go ", 1)
    return f"In {place.environment}, {', '.join([first, *others])}."


def _say_where(change: Change) -> str:
    return change.words if change in SWITCHES else f"to {change.words}"


def find_effect(event: AuditEvent) -> Effect | None:
    """The effect of an event; None if unknown: no flag is concerned, it was deleted, or its
    state before is not stored. Seven queries."""
    if event.feature is None or (flag := Flag.objects.filter(name=event.feature).first()) is None:
        return None
    if event.type not in TYPES:
        return Effect()
    same_change = AuditEvent.objects.filter(feature=flag.name, type__in=TYPES, created_at=event.created_at)
    if same_change.filter(pk__gt=event.pk).exists():  # the last event of a change has its effect
        return Effect()
    version = Version.of_events([event.created_at])
    changes = find_version_changes(flag, [version]).get(version)
    return Effect(changes.places, changes.more) if changes else None


def list_production_names() -> frozenset[str]:
    return frozenset(Environment.objects.production().values_list("name", flat=True))


Tags = list[dict[str, str]]


@dataclass
class Message:
    """``tags``: the current tags of the event's flag. ``effect``: the affected users, None if not computed."""

    event: AuditEvent
    tags: Tags = field(default_factory=list)
    effect: Effect | None = None

    @cached_property
    def author(self) -> str:
        """The full name, as pages show it. One query."""
        user = User.objects.filter(pk=self.event.actor_id).first() if self.event.actor_id else None
        return user.display_name if user else self.event.actor_name

    @cached_property
    def document(self) -> dict[str, Any]:
        document = make_event_document(self.event, self.tags) | {"createdByName": self.author}
        return (
            document | {"whoChanges": [place.document for place in self.effect.places]}
            if self.effect
            else document
        )

    @cached_property
    def markdown(self) -> str:
        sentences = (markdown(self.event, self.author), self.effect.sentence() if self.effect else "")
        return ". ".join(filter(None, sentences))


def make_event_document(event: AuditEvent, tags: Tags) -> dict[str, Any]:
    """The event as sent to receivers, with the reference's members."""
    return {
        "id": event.pk,
        "type": event.type,
        "createdBy": event.actor_name,
        "createdAt": iso(event.created_at),
        "createdByUserId": event.actor_id,
        "data": event.after,
        "preData": event.before,
        "tags": tags,
        "featureName": event.feature,
        "project": event.project,
        "environment": event.environment,
        "groupType": "transaction",
        "groupId": event.request_id,
        "comment": event.comment,
    }
