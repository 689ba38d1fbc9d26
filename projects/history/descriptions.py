"""Describes audit events for people: a sentence in parts, with links.

``flagadmin.core.audit.events`` has one for every event type; this module adds names and values. ``field_changes`` lists
the changed fields.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

from django.urls import reverse

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.events import derive_sentence, find_type
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.sentences import read_address
from flagadmin.core.document import Document
from flagadmin.core.errors import join_words
from projects.console import flag_url, project_url
from projects.history.field_changes import NO_NAMES, Names, changes_of, document_of


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a sentence. ``url`` makes it a link; ``mark`` is "before", "after" or ""."""

    text: str
    url: str = ""
    mark: str = ""


def describe(event: AuditEvent, names: Names = NO_NAMES, template: str = "") -> list[Part]:
    """The event's sentence without its actor: "turned", a link to the flag, "on in production"."""
    template = (template or _choose_template(event)).replace("change request {subject}", "{request}")
    return list(_make_parts(template, event, _make_values(event, names)))


# Sentences --------------------------------------------------------------------------------------------------

_SHARE_CHANGED = "moved {strategy} of {feature} in {environment} from {share_before} to {share_after}"
_SHARES = ("rollout", "percentage")


def _choose_template(event: AuditEvent) -> str:
    if event.type == E.FEATURE_STRATEGY_UPDATE and _describe_share_change(event):
        return _SHARE_CHANGED
    if event.type == E.FEATURE_REVERTED and event.subject is None:
        return "reverted a change of {feature}"
    if event.type == E.FEATURE_PROJECT_CHANGE and not document_of(event.before).get("project"):
        return "moved {feature} to {project}"
    if (kind := find_type(event.type)) is None:
        return derive_sentence(event.type)
    return kind.added if event.before is None else kind.page


def _describe_share_change(event: AuditEvent) -> tuple[str, str] | None:
    """The percentages before and after, if only they changed."""
    before, after = event.before, event.after
    if not (isinstance(before, dict) and isinstance(after, dict)) or before.get("name") != after.get("name"):
        return None
    changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    if changed != ["parameters"]:
        return None
    old, new = document_of(before.get("parameters")), document_of(after.get("parameters"))
    keys = [key for key in old.keys() | new.keys() if old.get(key) != new.get(key)]
    if len(keys) != 1 or keys[0] not in _SHARES or keys[0] not in old or keys[0] not in new:
        return None
    return f"{old[keys[0]]} %", f"{new[keys[0]]} %"


def _make_values(event: AuditEvent, names: Names) -> dict[str, Part]:
    """Returns the values of the sentence's placeholders."""
    before, after = document_of(event.before), document_of(event.after)
    document = after or before
    old, new = _describe_share_change(event) or ("", "")
    flag = _link_flag(event.project, event.feature)
    if event.type == E.FEATURE_DELETED:
        flag = Part(event.feature or "")
    values = {
        "project": _link_project(event.project) if event.project else Part("no project"),
        "environment": Part(event.environment or "every environment"),
        "feature": flag,
        "flag": flag,
        "subject": Part(event.subject or ""),
        "request": _link_request(event),
        "address": Part(read_address(event)),
        "old_project": _link_project(before.get("project")),
        "strategy": Part(_name_strategy(document, names)),
        "share_before": Part(old, mark="before"),
        "share_after": Part(new, mark="after"),
        "parent": _link_flag(None, document.get("feature")),
        "tag": Part(f"{document.get('type')}:{document.get('value')}"),
        "link": Part(str(document.get("title") or document.get("url") or "")),
        "fields": Part(join_words([change.field.lower() for change in changes_of(event)]) or "details"),
        "source": Part(event.subject or "another environment"),
        "flags": Part(_count_flags(after)),
        "roles": Part(_name_roles(document)),
    }
    if event.type == E.PROJECT_DELETED:
        values["project"] = Part(event.project or "")
    return values


def _make_parts(template: str, event: AuditEvent, values: Mapping[str, Part]) -> Iterator[Part]:
    for literal, name, _, _ in Formatter().parse(template):
        if literal:
            yield Part(literal)
        if name and values[name].text:
            yield values[name]


def _link_project(project: Any) -> Part:
    return Part(project, project_url(project)) if isinstance(project, str) and project else Part("no project")


def _link_request(event: AuditEvent) -> Part:
    number = event.subject or ""
    exists = number.isdigit() and event.project and event.type != E.CHANGE_REQUEST_DISCARDED
    url = reverse("change-request", args=[event.project, number]) if exists else ""
    return Part(f"change request {number}", url)


def _link_flag(project: str | None, name: Any) -> Part:
    return Part(str(name or ""), flag_url(project, name) if project and name else "")


def _name_strategy(strategy: Document, names: Names) -> str:
    number = names.strategies.get(str(strategy.get("id")))
    return f"strategy {number}" if number else "a strategy"


def _name_roles(document: Document) -> str:
    roles = [str(role.get("name")) for role in document.get("roles") or []]
    return f"{join_words(roles)} {'role' if len(roles) == 1 else 'roles'}"


def _count_flags(after: Document) -> str:
    number = after.get("features", sum(after.get(key, 0) for key in ("create", "change", "same")))
    return "1 flag" if number == 1 else f"{number:,} flags" if isinstance(number, int) else "flags"
