"""/activity/ID/revert: what reverting a change would do, whom it would change; reverts it. Undo buttons post here."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from flagadmin.core.errors import AppError, NotFound
from flagadmin.core.lists.pages import curl_for
from groups.console import Breadcrumbs, read_next_page
from projects.console import flag_url
from projects.drafting import DraftingPage
from projects.drafts import Draft, ExactDraft, FlagEdit, find_enabled_places
from projects.history.changes import change_page
from projects.history.field_changes import FieldChange, changes_of, part_changes
from projects.history.flag_parts import DEPENDENCIES, DETAILS, ENVIRONMENT
from projects.history.queries import readable_events
from projects.models import Environment, Segment
from projects.projects.required_comments import requires_comment
from projects.reverts.actions import revert_change
from projects.reverts.plan import (
    ChangePlan,
    FlagRevert,
    SubjectRevert,
    find_change,
    plan_change,
    problem_texts,
)
from projects.reverts.undo import tell_done
from projects.segments.actions import list_enabled_users

LABELS = {DEPENDENCIES: "Dependencies", DETAILS: "Description and settings"}


class ShownRow(NamedTuple):
    """A flag or another subject, and (label, changed fields, notes) for each of its parts."""

    name: str
    url: str
    lead: str
    parts: list[tuple[str, list[FieldChange], list[str]]]


class RevertChange(DraftingPage):
    """``flag``, in the URL, restricts it to one flag of the change."""

    template_name = "reverts/revert.html"
    title = "Revert this change"
    unchanged = "Nobody changes."
    shown_by = "get"

    def find(self) -> None:
        """Raises NotFound."""
        sent = self.request.POST if self.request.method == "POST" else self.request.GET
        self.flag = sent.get("flag", "")
        self.events = find_change(self.caller, self.kwargs["event_id"], self.flag)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        undoes = request.POST.get("do") == "undo"
        try:
            revert_change(self.kwargs["event_id"], flag=self.flag, caller=self.caller)
        except NotFound:
            raise
        except AppError as error:
            if undoes:
                messages.error(request, f"Nothing was undone. {error.message}")
                return HttpResponseRedirect(self.get_success_url())
            return self.render_to_response(self.get_context_data(refusal=error), status=error.status)
        tell_done(request, f"{'Undone' if undoes else 'Reverted'}: {self.sentence()}.", caller=self.caller)
        return HttpResponseRedirect(self.get_success_url())

    def sentence(self) -> str:
        change = self.change()
        return "".join(part.text for part in change.sentence) if change else ""

    def change(self) -> Any:
        events = readable_events(self.caller).filter(pk__in=[event.pk for event in self.events])
        return next(iter(change_page(events, caller=self.caller, size=1).changes), None)

    def get_success_url(self) -> str:
        return read_next_page(self.request) or reverse("activity")

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (("Activity", reverse("activity")),)

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
        before: Any = row.event.before
        segment = row.now and "constraints" in row.now and Segment.objects.filter(pk=row.now["id"]).first()
        if segment:
            draft = Draft(segments={segment.pk: before["constraints"]})
            yield from (FlagEdit(*key, draft) for key in list_enabled_users(segment, self.caller))

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        plan = plan_change(self.events, caller=self.caller)
        self.plan = plan
        reasons = [plan.refusal] if plan.refusal else [*plan.missing, *problem_texts(plan)]
        return super().get_context_data(
            change=self.change(),
            flag_name=self.flag,
            rows=list(make_rows(plan)),
            reasons=reasons,
            possible=not reasons and plan.changes_anything,
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
        """The page that reverts a flag to the version before the change, with all that came later."""
        first = min(event.pk for event in self.events if event.feature == row.name)
        earlier = readable_events(self.caller).filter(
            feature=row.name, project=row.flag and row.flag.project_id
        )
        before = earlier.filter(pk__lt=first).order_by("-pk").values_list("pk", flat=True).first()
        if row.flag is None or row.flag.is_archived or before is None:
            return ""
        return f"{flag_url(row.flag.project_id, row.name, 'flag-revert')}?event={before}"

    def get_curl(self) -> str:
        body = {"feature": self.flag} if self.flag else {}
        return curl_for(self.request, "POST", f"/api/admin/events/{self.kwargs['event_id']}/revert", body)


def make_rows(plan: ChangePlan) -> Iterator[ShownRow]:
    used = {
        segment for row in plan.flags for planned in row.parts for segment in planned.part.used_segments()
    }
    segments = dict(Segment.objects.filter(pk__in=used).values_list("pk", "name"))
    for row in plan.flags:
        if not row.changes_anything:
            continue
        leads = [{"archive": "Archived again.", "revive": "Revived."}.get(row.archival, "")]
        leads += [f"Tagged with {':'.join(tag)}." for tag in row.add_tags]
        leads += [f"Loses the tag {':'.join(tag)}." for tag in row.remove_tags]
        parts = [
            (
                planned.part.environment or LABELS[planned.part.kind],
                part_changes(planned.part, segments),
                [f"Note: {note.message}." for note in planned.notes],
            )
            for planned in row.parts
        ]
        url = flag_url(row.flag.project_id, row.name) if row.flag else ""
        yield ShownRow(row.name, url, " ".join(filter(None, leads)), parts)
    for subject in plan.subjects:
        if subject.changes_anything:
            changes = [FieldChange(each.field, each.after, each.before) for each in changes_of(subject.event)]
            yield ShownRow(subject.name, "", "", [("", changes, [])])


def _make_flag_edits(row: FlagRevert) -> Iterator[FlagEdit]:
    flag = row.flag
    if flag is None:
        return
    if row.archival == "archive":
        draft = Draft(flag.name, archived=True)
        yield from (
            FlagEdit(flag.project_id, flag.name, environment, draft)
            for _, environment in find_enabled_places([flag])
        )
        return
    changes: dict[str, dict[str, Any]] = {}
    common: dict[str, Any] = {}
    for planned in row.parts:
        part = planned.part
        if part.kind == ENVIRONMENT:
            changes[part.environment] = dict(part.after)
        elif part.kind == DEPENDENCIES:
            common |= part.after
    if row.archival == "revive":  # archived, it is not among the definitions that a draft changes
        return
    if common:
        changes |= {place: changes.get(place, {}) for _, place in find_enabled_places([flag])}
    for place, after in changes.items():
        yield FlagEdit(flag.project_id, flag.name, place, ExactDraft(flag.name, after | common))
