"""An event for receivers: as a document, as a sentence in Markdown, and with links."""

from dataclasses import dataclass, field
from typing import Any

from django.utils.functional import cached_property

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.http.timestamps import iso
from integrations.messages.effects import Effect
from integrations.messages.wordings import markdown

Tags = list[dict[str, str]]


@dataclass
class Message:
    """``tags``: those that the event's flag has now. ``effect``: whom it changed, None if nobody asked."""

    event: AuditEvent
    tags: Tags = field(default_factory=list)
    effect: Effect | None = None

    @cached_property
    def document(self) -> dict[str, Any]:
        document = make_event_document(self.event, self.tags)
        return document | {"whoChanges": self.effect.documents()} if self.effect else document

    @cached_property
    def markdown(self) -> str:
        sentences = (markdown(self.event), self.effect.sentence() if self.effect else "")
        return ". ".join(filter(None, sentences))


def make_event_document(event: AuditEvent, tags: Tags) -> dict[str, Any]:
    """The event as receivers get it, with the reference's members."""
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
