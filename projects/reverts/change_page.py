"""/activity/ID/revert: previews reverting a change and the affected users, and reverts it. Undo buttons post here."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.contrib import messages
from django.http import HttpResponseBase, HttpResponseRedirect
from django.urls import reverse, reverse_lazy

from flagadmin.core.errors import AppError, NotFound
from groups.console import SubmitPage, read_next_page
from projects.console import flag_url
from projects.drafting import DraftingPage
from projects.drafts import Draft, FlagEdit, find_enabled_places
from projects.history.changes import change_page
from projects.history.field_changes import FieldChange, changes_of
from projects.history.queries import readable_events
from projects.models import Environment, Segment
from projects.projects.required_comments import requires_comment
from projects.reverts.actions import revert_change
from projects.reverts.change_plan import ChangePlan, FlagRevert, SubjectRevert, find_change, plan_change
from projects.reverts.offers import tell_done
from projects.reverts.parts import ShownPart, list_part_edits, list_reasons, name_segments, show_part
from projects.segments.actions import list_enabled_users


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
