"""…/NAME/revert?event=ID: previews reverting a flag to a version, and reverts it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponseBase

from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.errors import AppError, ValidationError
from flagadmin.core.http.parameters import is_id
from groups.access import missing
from groups.console import SubmitPage
from projects.access import access_flag
from projects.console import OnFlagPage, flag_url
from projects.drafting import DraftingPage
from projects.drafts import FlagEdit
from projects.flags.history import drop_flag
from projects.history.changes import make_event_rows
from projects.history.diff import DEPENDENCIES, DETAILS, ENVIRONMENT, FlagPart
from projects.history.queries import readable_events
from projects.models import Environment
from projects.reverts.actions import revert_flag
from projects.reverts.offers import tell_done
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
from projects.reverts.version_plan import Choice, find_changed_segments, find_target, plan_revert


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
