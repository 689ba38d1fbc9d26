"""Writes the saved contexts of an import, and reverts them."""

from collections.abc import Iterable, Iterator

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event
from flagadmin.core.document import Document
from flagadmin.core.errors import Conflict
from groups.access import Caller
from importer.apply.digests import hash_document
from importer.plan.import_plan import Action, Plan
from playground.models import SavedContext
from playground.saved_contexts.actions import check_may_change, make_event
from playground.saved_contexts.queries import make_saved_context_document

FIELDS = ("context", "note", "expectations")


def lock_saved_contexts(names: Iterable[str]) -> dict[str, SavedContext]:
    rows = SavedContext.objects.select_for_update().filter(name__in=list(names)).order_by("id")
    return {saved.name: saved for saved in rows}


def write_saved_contexts(plan: Plan, caller: Caller) -> tuple[list[Event], Document]:
    """Writes the contexts. Returns the audit events, and the data for undoing: ``{before, after}`` by name."""
    planned = {
        change.name: change for change in plan.saved_contexts.values() if change.action is not Action.SAME
    }
    stored = lock_saved_contexts(planned) if planned else {}
    events, written = [], {}
    for name, change in planned.items():
        saved = stored.get(name) or SavedContext(name=name, project_id=change.project, created_by=caller.name)
        before = {**change.before, "enforced_in": saved.enforced_in} if change.before else None
        saved.enforced_in = dict(change.enforced_in)
        events.append(_change(saved, change.after, caller))
        written[name] = {"before": before, "after": hash_document(_make_document(saved))}
    return events, written


def undo_saved_contexts(written: Document, caller: Caller) -> Iterator[Event]:
    """Reverts the written contexts. Raises Conflict if one has changed since, NoAccess."""
    stored = lock_saved_contexts(written) if written else {}
    for name, state in written.items():
        saved = stored.get(name)
        if saved is None or hash_document(_make_document(saved)) != state["after"]:
            raise Conflict(f"Saved context {name} was changed after this import, so it cannot be undone.")
        check_may_change(caller, saved.project_id)
        if state["before"] is not None:
            saved.enforced_in = state["before"].get("enforced_in", {})
            yield _change(saved, state["before"], caller)
        else:
            yield make_event(
                EventType.SAVED_CONTEXT_DELETED, saved, before=make_saved_context_document(saved)
            )
            saved.delete()


def _change(saved: SavedContext, values: Document, caller: Caller) -> Event:
    before = make_saved_context_document(saved) if saved.pk else None
    for field in FIELDS:
        setattr(saved, field, values[field])
    saved.updated_by, saved.updated_at = caller.name, timezone.now()
    saved.save()
    kind = EventType.SAVED_CONTEXT_UPDATED if before else EventType.SAVED_CONTEXT_CREATED
    return make_event(kind, saved, before=before, after=make_saved_context_document(saved))


def _make_document(saved: SavedContext) -> Document:
    return {field: getattr(saved, field) for field in FIELDS}
