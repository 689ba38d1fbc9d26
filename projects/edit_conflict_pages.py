"""What a form was drawn from: sent with it, so that what somebody else has changed since is told, not overwritten."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Max, QuerySet
from django.http import HttpRequest, QueryDict

from flagadmin.audit.models import AuditEvent
from flagadmin.audit.sentences import sentence
from projects.sentences import Saying

TOLD_CHANGES = 10


@dataclass(frozen=True, slots=True)
class Seen:
    """``event``: the id of the last event that there was about it, 0 for none; None where that was not sent."""

    fingerprint: str
    event: int | None

    @classmethod
    def now(cls, fingerprint: str, events: QuerySet[AuditEvent]) -> "Seen":
        return cls(fingerprint, events.aggregate(last=Max("id"))["last"] or 0)

    @classmethod
    def sent(cls, given: QueryDict) -> "Seen":
        fingerprint, _, event = given.get("seen", "").partition(".")
        readable = event.isascii() and event.isdecimal() and len(event) < 19
        return cls(fingerprint, int(event) if readable else None)

    def events_since(self, events: QuerySet[AuditEvent]) -> list[tuple[AuditEvent, str]]:
        """The latest of them, each with its sentence."""
        if self.event is None:
            return []
        since = events.filter(id__gt=self.event).order_by("-id")
        return [(event, sentence(event)) for event in since[:TOLD_CHANGES]]

    def __str__(self) -> str:
        return f"{self.fingerprint}.{self.event}"


@dataclass(frozen=True, slots=True)
class Changed:
    """What is told when a form was not saved: the events since it was drawn, and what is stored now."""

    events: Sequence[tuple[AuditEvent, str]]
    now: Sequence[Saying | str]


class SavedAsSeen:
    """Mixed into a page whose form changes what others may change meanwhile.

    Such a page calls ``look`` once it knows what it is about, sends ``seen`` with its form, and calls
    ``tell_changes`` when saving raised Conflict: saving again is then about what is stored now.
    """

    request: HttpRequest
    seen: Seen
    changed: Changed | None = None

    def events(self) -> QuerySet[AuditEvent]:
        """About what is changed here."""
        raise NotImplementedError

    def stored_now(self) -> tuple[str, Sequence[Saying | str]]:
        """The fingerprint of what is stored, and all that it says."""
        raise NotImplementedError

    def look(self) -> None:
        if self.request.method == "POST":
            self.seen = Seen.sent(self.request.POST)
        else:
            self.seen = Seen.now(self.stored_now()[0], self.events())

    def tell_changes(self) -> None:
        fingerprint, sayings = self.stored_now()
        self.changed = Changed(self.seen.events_since(self.events()), sayings)
        self.seen = Seen.now(fingerprint, self.events())
