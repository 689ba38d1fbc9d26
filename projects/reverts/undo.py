"""Messages with an Undo button, for what the request has just changed. ``includes/messages.html`` shows them."""

from django.contrib import messages
from django.http import HttpRequest
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.http.logs import request_id
from groups.access import Caller
from groups.console import ActionPage
from projects.history.changes import change_of
from projects.reverts.change_plan import MAX_FLAGS
from projects.reverts.offers import find_offered

UNDO = "undo-"
"""Begins the tag of a message that has an Undo button; the event to revert follows."""


def tell_done(request: HttpRequest, done: str, *, caller: Caller) -> None:
    """Adds a message, with an Undo button if what the request has changed can be reverted. Three queries."""
    event = _find_undoable(caller)
    messages.success(request, done, extra_tags=f"{UNDO}{event.pk}" if event else "")


def _find_undoable(caller: Caller) -> AuditEvent | None:
    """The newest event of this request, if its change can be reverted."""
    sent = request_id.get()
    recorded = AuditEvent.objects.filter(request_id=sent, actor_name=caller.name) if sent else None
    newest = recorded and recorded.newest_first().first()
    if not newest or (timezone.now() - newest.created_at).total_seconds() > 60:
        return None
    events = list(change_of(newest, caller=caller)[: MAX_FLAGS * 10])
    return newest if find_offered({0: events}, caller) else None


class UndoableAction(ActionPage):
    """A button whose message has an Undo button, also when htmx replaces only a part of the page."""

    def tell(self, done: str) -> None:
        if done and ("HX-Request" not in self.request.headers or _find_undoable(self.caller)):
            tell_done(self.request, done, caller=self.caller)
