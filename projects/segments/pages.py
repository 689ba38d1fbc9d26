"""/segments/: the list of segments, and the pages that create and delete one; `edit_page` edits one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse, reverse_lazy

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.edit_conflicts.forms import EditConflictMixin
from flagadmin.core.errors import AppError, NotFound, Problem, collect_errors, pluralize
from flagadmin.core.http.fields import path_id
from groups.console import Breadcrumbs, Column, ConfirmPage, Filter, ListPage, Permission, SubmitPage
from projects.drafts import Draft, DraftingPage, FlagEdit
from projects.history.field_changes import FieldChange
from projects.history.queries import readable_events
from projects.models import Environment, Project, Segment
from projects.reverts.change_plan import tell_done
from projects.segments import actions
from projects.segments.lists import may_be_list
from projects.states import SegmentState
from projects.strategies.constraint_forms import (
    MAX_OFFERED,
    ConstraintFields,
    change_rows,
    clean_constraints,
    list_operator_choices,
    make_constraint_rows,
    read_constraints,
)
from projects.strategies.forms import sort_problems
from projects.strategies.sentences import Summary, summarize_conditions
from projects.used_by.queries import UNUSED, count_segment_usage, list_segment_uses, paginate_uses

SEGMENTS = ("Segments", reverse_lazy("segments"))


@dataclass(frozen=True, slots=True)
class SegmentRow:
    id: int
    name: str
    description: str
    sentence: str
    project: str
    flags: int


class SegmentsPage(ListPage):
    template_name = "segments/segments.html"
    title = "Segments"
    lead = "Conditions shared by strategies. A change applies to every strategy that uses the segment."
    noun = "segment,segments"
    new = ("segment-new", "New segment")
    none_yet = "No segments yet. A segment names conditions that several strategies share."
    begin = ("segment-new", "Create the first segment")
    default_sort = "name"
    columns = (
        Column(
            "name",
            "Segment",
            by=("name",),
            cell='<a href="{% url "segment" row.id %}">{{ row.name }}</a>{% with mark=marks|get:row.id %}{% if mark %}'
            ' <a class="pill info" href="{{ mark.url }}" title="{{ mark.sentence }}">Request {{ mark.number }}</a>'
            "{% endif %}{% endwith %}",
            below="description",
        ),
        Column("sentence", "Conditions", unlabeled=True),
        Column("project", "Project", by=("project",), shown='default:"all"'),
        Column("flags", "Used by flags", by=("flags",), numeric=True),
    )
    filters = (Filter("q", "Name or description", by=("name", "description")),)
    api_call = "GET /api/admin/segments"

    def get_rows(self, values: dict[str, str]) -> list[SegmentRow]:
        usage = count_segment_usage(self.caller)
        segments = self.filter_rows(Segment.objects.readable_by(self.caller), values)
        return [
            SegmentRow(
                id=segment.pk,
                name=segment.name,
                description=segment.description or "",
                sentence=str(summarize_conditions(segment.constraints)).removesuffix("."),
                project=segment.project_id or "",
                flags=usage.get(segment.pk, UNUSED)["usedInFeatures"],
            )
            for segment in segments
        ]

    def may_create(self) -> bool:
        anywhere = [*Project.objects.readable_by(self.caller).values_list("id", flat=True)]
        own = any(self.caller.can(actions.OWN_PROJECT, project=project) for project in anywhere)
        return own or self.caller.can(Permission.CREATE_SEGMENT)


class SegmentForm(SubmitPage):
    """Base class of the pages that create and edit a segment. ``segment`` has the form's values, unsaved."""

    template_name = "segments/segment.html"
    restores = True
    passes = (NotFound,)
    stored: Any = {"constraints": ()}  # the segment before editing
    button = "Create segment"
    title = "New segment"
    parents = (SEGMENTS,)
    api_call = "POST /api/admin/segments"
    api_example = {"name": "beta-testers", "constraints": []}

    def find(self) -> None:
        """Raises NoAccess if the caller may not create segments anywhere."""
        self.segment = Segment(project_id=self.request.GET.get("project") or None)
        if not self.projects():
            actions.check_may_create(self.caller, None)

    def locked(self) -> str:
        return ""

    def save(self) -> Segment:
        values = {
            name: getattr(self.segment, name) for name in ("name", "description", "constraints", "project_id")
        }
        return actions.create_segment(values, caller=self.caller)

    def projects(self) -> list[str]:
        """Ids of the projects in which the caller may create segments."""
        ids = Project.objects.active().readable_by(self.caller).values_list("id", flat=True)
        everywhere = self.caller.can(Permission.CREATE_SEGMENT)
        return [name for name in ids if everywhere or self.caller.can(actions.OWN_PROJECT, project=name)]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        self.read(request)
        do = request.POST.get("do", "save")
        if do in ("save", "save-list"):
            self.rows = self.segment.constraints
            self.segment.constraints = clean_constraints(self.rows)
            return self.try_to_submit()
        change_rows(self.segment.constraints, do, self.stored["constraints"])
        return self.render_to_response(self.get_context_data())

    def read(self, request: HttpRequest) -> None:
        self.segment.name = request.POST.get("name", "").strip()
        self.segment.description = request.POST.get("description", "").strip() or None
        self.segment.project_id = request.POST.get("project") or None
        self.segment.constraints = read_constraints(request.POST, self.stored["constraints"])

    def needs_confirmation(self) -> bool:
        """Whether to show the effect first. Raises the errors of saving."""
        return False

    def describe_change(self) -> dict[str, Any]:
        """Describes the change for the confirmation before saving."""
        return {}

    def ask_first(self) -> HttpResponseBase | None:
        actions.check_typed(self.segment.constraints, self.stored["constraints"])
        if not self.needs_confirmation():
            return None
        self.segment.constraints = self.rows
        return self.render_to_response(self.get_context_data(**self.describe_change()))

    def submit(self) -> str:
        segment = self.save()
        tell_done(self.request, f"Saved segment {segment.name}.", caller=self.caller)
        if self.request.POST.get("do") == "save-list":
            return reverse("segment-list", args=[segment.pk])
        return reverse("segments")

    def refuse(self, error: AppError) -> HttpResponseBase:
        self.segment.constraints = self.rows
        problems = error.details or [Problem("", error.message)]
        return self.render_to_response(self.get_context_data(problems=problems), status=error.status)

    def get_context_data(self, problems: Sequence[Problem] = (), **kwargs: Any) -> dict[str, Any]:
        own_problems = {
            problem.path: problem.message for problem in problems if problem.path in ("name", "project")
        }
        by_place, _, others = sort_problems(p for p in problems if p.path not in own_problems)
        constraint_fields = ConstraintFields.of(self.segment.project_id or "")
        return super().get_context_data(
            segment=self.segment,
            rows=make_constraint_rows(self.segment.constraints, constraint_fields, by_place["constraints"]),
            fields=constraint_fields.names[:MAX_OFFERED],
            operators=list_operator_choices(),
            added=self.request.POST.get("do", ""),
            projects=list(dict.fromkeys([*self.projects(), *filter(None, [self.segment.project_id])])),
            summary=summarize_conditions(clean_constraints(self.segment.constraints)),
            own_problems=own_problems,
            errors=others,
            button=self.button,
            locked=self.locked(),
            **kwargs,
        )


class DeleteSegment(ConfirmPage):
    """Confirms the deletion. Shows the strategies that use the segment, which prevent the deletion."""

    asks_why = True
    api_call = "DELETE /api/admin/segments/{segment_id}"

    def plan(self) -> dict[str, Any]:
        identifier = path_id(self.kwargs["segment_id"], "Segment")
        segment = self.segment = actions.access_segment_with(
            self.caller, identifier, Permission.DELETE_SEGMENT
        )
        count = len(segment.constraints)
        blockers = collect_errors(partial(actions.check_segment_is_unused, segment, self.caller))
        return {
            "title": f"Delete segment {segment.name}",
            "removed_items": [f"segment {segment.name} with its {pluralize(count, 'condition')}"],
            "blocked": " ".join(error.message for error in blockers),
            "uses": paginate_uses(self.request, list_segment_uses(segment.pk, self.caller)),
        }

    def act(self) -> tuple[str, str]:
        segment = actions.access_segment(self.caller, path_id(self.kwargs["segment_id"], "Segment"))
        actions.delete_segment(segment.pk, caller=self.caller)
        return f"Deleted segment {segment.name}.", reverse("segments")

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (SEGMENTS, (self.segment.name, reverse("segment", args=[self.segment.pk])))


class OfSegment(EditConflictMixin, DraftingPage):
    """Base class of the pages that change a stored segment. ``stored`` is its document."""

    segment: Segment
    stored: SegmentState

    def find(self) -> None:
        """Loads the segment that the URL names. Raises NotFound, NoAccess."""
        self.segment = actions.access_segment(self.caller, path_id(self.kwargs["segment_id"], "Segment"))
        self.stored = self.segment.document()
        self.may_edit = self.may(Permission.UPDATE_SEGMENT)
        if self.request.method == "POST":
            actions.access_segment_with(self.caller, self.segment.pk, Permission.UPDATE_SEGMENT)
        self.note_version()

    def get_events(self) -> QuerySet[AuditEvent]:
        events = readable_events(self.caller)
        return events.filter(type=EventType.SEGMENT_UPDATED, after__id=self.segment.pk)

    def get_current_document(self) -> SegmentState:
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

    def list_edits(self, constraints: list[Any]) -> list[FlagEdit]:
        """The changes of flags that are on, if the segment had these constraints. Raises the errors of saving."""
        self.segment.constraints = constraints
        actions.check_update(self.segment, self.stored.get("project"), caller=self.caller)
        draft = Draft(segments={self.segment.pk: self.segment.constraints})
        names = Environment.objects.names()
        places = actions.list_enabled_users(self.segment, self.caller)
        ordered = sorted(places, key=lambda key: (names.index(key[2]), key))
        return [FlagEdit(*place, draft) for place in ordered]


class EditSegment(OfSegment, SegmentForm):
    title = "Segment {page.stored[name]}"
    button = "Save segment"
    unchanged = "No flag that is on uses this segment."
    shown_by = "post"
    api_call = "PUT /api/admin/segments/{segment_id}"

    def get_edits(self) -> list[FlagEdit]:
        self.find()
        self.read(self.request)
        self.segment.constraints = clean_constraints(self.segment.constraints)
        actions.check_typed(self.segment.constraints, self.stored["constraints"])
        return self.list_edits(self.segment.constraints)

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

    def get_context_data(self, problems: Sequence[Problem] = (), **kwargs: Any) -> dict[str, Any]:
        uses = paginate_uses(self.request, list_segment_uses(self.segment.pk, self.caller))
        return super().get_context_data(
            problems=problems,
            uses=uses,
            used=uses.total,
            may_be_list=may_be_list(self.stored["constraints"]),
            may_delete=self.may(Permission.DELETE_SEGMENT),
            **kwargs,
        )

    def get_api_body(self) -> dict[str, Any]:
        return {name: self.stored[name] for name in ("name", "description", "constraints")}
