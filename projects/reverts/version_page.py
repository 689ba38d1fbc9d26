"""…/NAME/revert?event=ID: previews reverting a flag to a version, and reverts it.

/activity/ID/revert: previews reverting a change and the affected users, and reverts it. Undo buttons post
here.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse, reverse_lazy

from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.errors import AppError, NotFound, ValidationError
from flagadmin.core.http.fields import is_id
from groups.access import missing
from groups.console import SubmitPage, read_next_page
from projects.access import access_flag
from projects.console import OnFlagPage, flag_url
from projects.drafts import Draft, DraftingPage, FlagEdit, find_enabled_places
from projects.flags.history import drop_flag
from projects.history.changes import change_page, make_event_rows
from projects.history.diff import DEPENDENCIES, DETAILS, ENVIRONMENT, FlagPart
from projects.history.field_changes import FieldChange, changes_of
from projects.history.queries import readable_events
from projects.models import Environment, Segment
from projects.projects.required_comments import requires_comment
from projects.reverts.actions import revert_change, revert_flag
from projects.reverts.change_plan import (
    ChangePlan,
    FlagRevert,
    SubjectRevert,
    find_change,
    plan_change,
    tell_done,
)
from projects.reverts.environment_plan import Choice, find_changed_segments, find_target, plan_revert
from projects.reverts.parts import (
    PERMISSIONS,
    PlannedPart,
    ShownPart,
    format_moment,
    list_part_edits,
    list_reasons,
    may_revert,
    name_segments,
    show_part,
)
from projects.segments.actions import list_enabled_users


class PartRow(NamedTuple):
    """A part with a checkbox. ``reasons`` prevent reverting it."""

    key: str
    shown: ShownPart
    is_production: bool
    reasons: Sequence[str]
    chosen: bool


class RevertPage(OnFlagPage, DraftingPage, SubmitPage):
    """Users can leave out any differing part; parts that cannot be restored always are."""

    title = "Revert {page.flag.name}"
    template_name = "reverts/version.html"
    shown_by = "get"
    unchanged = "Nobody changes."
    api_call = "POST /api/admin/projects/{project_id}/features/{name}/revert"

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.parameters = request.POST if request.method == "POST" else request.GET

    def find(self) -> None:
        """Raises NotFound, NoAccess, Conflict if the flag was archived then."""
        self.flag = access_flag(self.caller, *self.place, archived=False)
        if not may_revert(self.caller, self.flag.project_id):
            raise missing(PERMISSIONS, project=self.flag.project_id)
        text = self.parameters.get("event", self.request.GET.get("event", ""))
        if not is_id(text):
            raise ValidationError.at("event", "must be the number of an event")
        self.event = int(text)
        self.at = find_target(self.caller, self.flag, event=self.event)
        self.plan = plan_revert(self.flag, self.at, caller=self.caller)

    def submit(self) -> str:
        key = (self.flag.project_id, self.flag.name)
        expected = frozenset(filter(None, [self.parameters.get("expected", "")])) or None
        done = revert_flag(*key, self.at, choice=self.choice(), expected=expected, caller=self.caller)
        then = f"{self.flag.name} to its state of {format_moment(self.at)}"
        text = f"Reverted {then}." if done else "Nothing was chosen to revert."
        tell_done(self.request, text, caller=self.caller)
        return flag_url(*key)

    def refuse(self, error: AppError) -> HttpResponseBase:
        self.find()
        return super().refuse(error)

    def is_chosen(self, planned: PlannedPart) -> bool:
        if planned.problems or planned.missing:
            return False
        return "shown" not in self.parameters or planned.part.key in self.parameters.getlist("part")

    def chosen(self) -> list[FlagPart]:
        return [planned.part for planned in self.plan.parts if self.is_chosen(planned)]

    def choice(self) -> Choice:
        chosen = self.chosen()
        kinds = {part.kind for part in chosen}
        return Choice(
            environments=frozenset(part.environment for part in chosen if part.environment),
            dependencies=DEPENDENCIES in kinds,
            details=DETAILS in kinds,
        )

    def get_edits(self) -> list[FlagEdit]:
        self.find()
        return list(list_part_edits(self.flag, self.chosen()))

    def get_api_body(self) -> dict[str, int]:
        return {"event": self.event}

    def get_success_url(self) -> str:
        return flag_url(*self.place)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        event = readable_events(self.caller).get(pk=self.event)
        [row] = make_event_rows([event], caller=self.caller)
        rows = self.list_rows()
        edits = list_part_edits(self.flag, [part.part for part in self.plan.parts])
        environments = sorted({edit.environment for edit in edits})
        return super().get_context_data(
            flag=self.flag,
            event=event,
            actor=row.actor.name,
            sentence=list(drop_flag(row.sentence, self.flag.name)),
            rows=rows,
            possible=any(not row.reasons for row in rows),
            places=[(self.flag.project_id, name) for name in environments],
            touches=[(self.flag.name, name) for name in environments],
            changed_segments=find_changed_segments(self.plan, self.at),
            expected=hash_document(self.plan.before),
            back=self.get_success_url(),
            **kwargs,
        )

    def list_rows(self) -> list[PartRow]:
        segments = name_segments(self.plan.parts)
        production = set(Environment.objects.production().values_list("name", flat=True))
        order = Environment.objects.names()
        rows = [self.make_row(planned, segments, production) for planned in self.plan.parts]
        places = {f"{ENVIRONMENT}:{name}": index for index, name in enumerate(order)}
        return sorted(rows, key=lambda row: places.get(row.key, len(places)))

    def make_row(self, planned: PlannedPart, segments: Mapping[int, str], production: set[str]) -> PartRow:
        reasons = list_reasons(planned.problems)
        if planned.missing:
            scope = {"project": self.flag.project_id, "environment": planned.part.environment or None}
            reasons += [missing([permission], **scope).message for permission in planned.missing[:1]]
        return PartRow(
            planned.part.key,
            show_part(planned, segments),
            planned.part.environment in production,
            reasons,
            self.is_chosen(planned),
        )


class ShownRow(NamedTuple):
    """A flag or another subject."""

    name: str
    url: str
    lead: str
    parts: Sequence[ShownPart]


class RevertChange(DraftingPage, SubmitPage):
    """``flag``, in the URL, restricts it to one flag of the change."""

    parents = (("Audit log", reverse_lazy("activity")),)
    template_name = "reverts/change.html"
    title = "Revert this change"
    unchanged = "Nobody changes."
    shown_by = "get"
    api_call = "POST /api/admin/events/{event_id}/revert"
    passes = (NotFound,)

    def find(self) -> None:
        """Raises NotFound."""
        sent = self.request.POST if self.request.method == "POST" else self.request.GET
        self.flag = sent.get("flag", "")
        self.undoes = self.request.POST.get("do") == "undo"
        self.events = find_change(self.caller, self.kwargs["event_id"], self.flag)

    def submit(self) -> str:
        revert_change(self.kwargs["event_id"], flag=self.flag, caller=self.caller)
        done = "Undone" if self.undoes else "Reverted"
        tell_done(self.request, f"{done}: {self.sentence()}.", caller=self.caller)
        return self.get_success_url()

    def refuse(self, error: AppError) -> HttpResponseBase:
        if not self.undoes:
            return super().refuse(error)
        messages.error(self.request, f"Nothing was undone. {error.message}")
        return HttpResponseRedirect(self.get_success_url())

    def sentence(self) -> str:
        change = self.change()
        return "".join(part.text for part in change.sentence) if change else ""

    def change(self) -> Any:
        events = readable_events(self.caller).filter(pk__in=[event.pk for event in self.events])
        return next(iter(change_page(events, caller=self.caller, size=1).changes), None)

    def get_success_url(self) -> str:
        return read_next_page(self.request) or reverse("activity")

    def get_edits(self) -> list[FlagEdit]:
        self.find()
        plan = plan_change(self.events, caller=self.caller)
        if any(row.archival == "revive" for row in plan.flags):
            self.unchanged = "Applications get the flag again, as shown above."
        order = Environment.objects.names()
        edits = [edit for row in plan.flags for edit in _make_flag_edits(row)]
        edits += [edit for subject in plan.subjects for edit in self.segment_edits(subject)]
        return sorted(edits, key=lambda edit: order.index(edit.environment))

    def segment_edits(self, row: SubjectRevert) -> Iterator[FlagEdit]:
        before: Any = row.before
        segment = (
            before
            and row.now
            and "constraints" in row.now
            and Segment.objects.filter(pk=row.now["id"]).first()
        )
        if segment:
            draft = Draft(segments={segment.pk: before["constraints"]})
            yield from (FlagEdit(*key, draft) for key in list_enabled_users(segment, self.caller))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        plan = plan_change(self.events, caller=self.caller)
        self.plan = plan
        edits = [edit for row in plan.flags for edit in _make_flag_edits(row)]
        reasons = [plan.refusal] if plan.refusal else [*plan.missing, *list_reasons(plan.problems)]
        return super().get_context_data(
            change=self.change(),
            flag_name=self.flag,
            rows=list(make_rows(plan)),
            reasons=reasons,
            possible=not reasons and plan.changes_anything,
            places=sorted({(edit.project, edit.environment) for edit in edits}),
            touches=sorted({(edit.flag, edit.environment) for edit in edits}),
            versions=[
                (row.name, url) for row in plan.flags if row.problems and (url := self.version_url(row))
            ],
            back=self.get_success_url(),
            comment_required=requires_comment(
                {row.flag.project_id for row in plan.flags if row.flag},
                {part.part.environment for row in plan.flags for part in row.parts if part.part.environment},
            ),
            **kwargs,
        )

    def version_url(self, row: FlagRevert) -> str:
        """The page that reverts a flag to the version before the change, including all later changes."""
        first = min(event.pk for event in self.events if event.feature == row.name)
        earlier = readable_events(self.caller).filter(
            feature=row.name, project=row.flag and row.flag.project_id
        )
        before = earlier.filter(pk__lt=first).order_by("-pk").values_list("pk", flat=True).first()
        if row.flag is None or row.flag.is_archived or before is None:
            return ""
        return f"{flag_url(row.flag.project_id, row.name, 'flag-revert')}?event={before}"

    def get_api_body(self) -> Any:
        return {"feature": self.flag} if self.flag else {}


def make_rows(plan: ChangePlan) -> Iterator[ShownRow]:
    segments = name_segments(plan.parts)
    for row in plan.flags:
        if not row.changes_anything:
            continue
        leads = [{"archive": "Archived again.", "revive": "Revived."}.get(row.archival, "")]
        leads += [f"Tagged with {':'.join(tag)}." for tag in row.add_tags]
        leads += [f"Loses the tag {':'.join(tag)}." for tag in row.remove_tags]
        if row.schema is not None:
            leads.append(
                "Loses its payload schema."
                if row.schema["schema"] is None
                else "Gets its previous payload schema."
            )
        parts = [show_part(planned, segments) for planned in row.parts]
        url = flag_url(row.flag.project_id, row.name) if row.flag else ""
        yield ShownRow(row.name, url, " ".join(filter(None, leads)), parts)
    for subject in plan.subjects:
        if subject.changes_anything:
            changes = [FieldChange(each.field, each.after, each.before) for each in changes_of(subject.event)]
            yield ShownRow(subject.name, "", "", [ShownPart("", changes)])


def _make_flag_edits(row: FlagRevert) -> Iterator[FlagEdit]:
    flag = row.flag
    if (
        flag is None or row.archival == "revive"
    ):  # an archived flag is not among the definitions that a draft changes
        return
    if row.archival == "archive":
        draft = Draft(flag.name, archived=True)
        yield from (FlagEdit(flag.project_id, *place, draft) for place in find_enabled_places([flag]))
        return
    yield from list_part_edits(flag, [planned.part for planned in row.parts])
