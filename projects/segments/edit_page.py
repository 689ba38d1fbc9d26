"""/segments/ID/: the page that edits a segment. It asks first if flags that are on in production would change."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.edit_conflicts.forms import EditConflictMixin
from flagadmin.core.errors import AppError, Problem
from flagadmin.core.http.ids import path_id
from groups.permissions import Permission
from projects.drafting import DraftingPage
from projects.drafts import Draft, FlagEdit
from projects.history.field_changes import FieldChange
from projects.history.queries import readable_events
from projects.models import Environment, Segment
from projects.segments import actions
from projects.segments.documents import make_segment_document
from projects.segments.pages import SegmentForm
from projects.strategies.constraint_forms import clean_constraints
from projects.strategies.sentences import Summary, summarize_conditions
from projects.used_by.lines import paginate_uses
from projects.used_by.queries import list_segment_uses


class EditSegment(DraftingPage, EditConflictMixin, SegmentForm):
    button = "Save segment"
    unchanged = "No flag that is on uses this segment."
    shown_by = "post"
    api_call = "PUT /api/admin/segments/{segment_id}"

    def find(self) -> None:
        """Loads the segment that the URL names. Raises NotFound, NoAccess."""
        self.segment = actions.access_segment(self.caller, path_id(self.kwargs["segment_id"], "Segment"))
        self.stored = make_segment_document(self.segment)
        self.may_edit = self.may(Permission.UPDATE_SEGMENT)
        if self.request.method == "POST":
            actions.access_segment_with(self.caller, self.segment.pk, Permission.UPDATE_SEGMENT)
        self.note_version()

    def get_events(self) -> QuerySet[AuditEvent]:
        events = readable_events(self.caller)
        return events.filter(type=EventType.SEGMENT_UPDATED, after__id=self.segment.pk)

    def get_current_document(self) -> dict[str, Any]:
        return self.stored

    def sentences_now(self) -> list[Summary | str]:
        segment = actions.access_segment(self.caller, self.segment.pk)
        texts = (segment.name, segment.description, segment.project_id or "for all projects")
        facts = ", ".join(text for text in texts if text)
        return [summarize_conditions(segment.constraints), f"({facts})"]

    def may(self, permission: Permission) -> bool:
        project = self.segment.project_id
        own = bool(project) and self.caller.can(actions.OWN_PROJECT, project=project)
        return own or self.caller.can(permission)

    def locked(self) -> str:
        return "" if self.may_edit else 'You need the "Edit segments" permission to change it.'

    def get_edits(self) -> list[FlagEdit]:
        self.find()
        self.read(self.request)
        self.segment.constraints = clean_constraints(self.segment.constraints)
        actions.check_update(self.segment, self.stored.get("project"), caller=self.caller)
        draft = Draft(segments={self.segment.pk: self.segment.constraints})
        names = Environment.objects.names()
        places = actions.list_enabled_users(self.segment, self.caller)
        ordered = sorted(places, key=lambda key: (names.index(key[2]), key))
        return [FlagEdit(*place, draft) for place in ordered]

    def needs_confirmation(self) -> bool:
        """Asks if other conditions would change flags that are on in a production environment."""
        if "confirmed" in self.request.POST:
            return False
        actions.check_update(self.segment, self.stored.get("project"), caller=self.caller)
        if self.segment.constraints == self.stored["constraints"] or not self.production_uses():
            return False
        self.check_version()
        return True

    def production_uses(self) -> int:
        used = actions.list_enabled_users(self.segment, self.caller)
        production = set(Environment.objects.production().values_list("name", flat=True))
        return sum(environment in production for _, _, environment in used)

    def describe_change(self) -> dict[str, Any]:
        before, after = self.stored["constraints"], clean_constraints(self.segment.constraints)
        texts = [str(summarize_conditions(constraints)) for constraints in (before, after)]
        return {
            "asking": True,
            "uses_in_production": self.production_uses(),
            "changes": [FieldChange("Conditions", *texts)],
        }

    def save(self) -> Segment:
        names = ("name", "description", "constraints", "project_id")
        changes = {name: getattr(self.segment, name) for name in names}
        expected = self.version.expected
        return actions.update_segment(self.segment.pk, changes, expected=expected, caller=self.caller)

    def refuse(self, error: AppError) -> HttpResponseBase:
        self.show_conflict(error)
        return super().refuse(error)

    def get_title(self) -> str:
        return f"Segment {self.stored['name']}"

    def get_context_data(self, problems: Sequence[Problem] = (), **kwargs: Any) -> dict[str, Any]:
        uses = paginate_uses(self.request, list_segment_uses(self.segment.pk, self.caller))
        return super().get_context_data(
            problems=problems,
            uses=uses,
            used=uses.total,
            may_delete=self.may(Permission.DELETE_SEGMENT),
            **kwargs,
        )

    def get_api_body(self) -> dict[str, Any]:
        return {name: self.stored[name] for name in ("name", "description", "constraints")}
