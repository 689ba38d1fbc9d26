"""Postpones a form: its changes become a scheduled request, approved by its author's own permissions."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from flagadmin.core.change_checks import Refusal
from flagadmin.core.change_checks.override import LATER, STEPS, WHEN
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import AppError, ValidationError
from groups.access import Caller
from projects.definitions import Definitions, read_definitions
from projects.models import Flag
from releases.derive import EnvironmentChanges, ProposedChange, derive_changes
from releases.gate_refusal import NeedsChangeRequest
from releases.models import ChangeRequest
from releases.plans.add import add_in_steps, save_in_steps
from releases.requests.propose import send_changes
from releases.schedules.actions import check_time, schedule_request

NOT_LATER = "Only what flags return can be changed later, and not who they belong to. Nothing was saved."


class Postponed(Refusal):
    """A form that asks for a later time. Nothing is saved now."""

    title = "Save later"
    template_name = "releases/ask_time.html"
    answer_field = LATER
    status = ValidationError.status

    def __init__(self, places: Sequence[EnvironmentChanges]) -> None:
        super().__init__(places)
        self.places = places
        self._problem = "" if places else NOT_LATER

    @property
    def message(self) -> str:
        return self._problem

    def as_app_error(self) -> AppError:
        return ValidationError(self.message)

    def unite(self, refusals: Sequence[Refusal]) -> Refusal:
        """Combines them with those of other projects. Those that need a request come first."""
        others = [refusal for refusal in refusals if not isinstance(refusal, Postponed)]
        places = [place for refusal in refusals if isinstance(refusal, Postponed) for place in refusal.places]
        return others[0] if others else Postponed(places)

    def settle(self, answers: Mapping[str, str], caller: Any) -> str | None:
        if not self.places:
            return None
        if answers.get(WHEN) == STEPS:
            return self._settle_in_steps(answers, caller)
        try:
            places = find_own(self.places, caller)
            requests = save_later(places, parse_utc(answers.get(LATER, "")), caller=caller)
        except AppError as error:
            self._problem = error.message
            return None
        first = requests[0]
        return f"/projects/{first.project_id}/change-requests/{first.pk}/"

    def _settle_in_steps(self, answers: Mapping[str, str], caller: Any) -> str | None:
        try:
            plan = save_in_steps(self.places, answers, caller=caller)
        except AppError as error:
            self._problem, self.places = error.message, ()
            return None
        return f"/projects/{plan.flag.project_id}/features/{plan.flag.name}/"


class StepsNeedRequest(NeedsChangeRequest):
    """A form that may ask for steps in a place that needs a request: the request starts the plan, which is
    added at once.
    """

    refused = ""

    @property
    def message(self) -> str:
        return self.refused or super().message

    def settle(self, answers: Mapping[str, str], caller: Any) -> str | None:
        if answers.get(WHEN) != STEPS or not {"send_for_review", "add_to_request"}.intersection(answers):
            return super().settle(answers, caller)
        try:
            return self._settle_in_steps(answers, caller)
        except AppError as error:
            self.refused = error.message
            return None

    @transactional
    def _settle_in_steps(self, answers: Mapping[str, str], caller: Any) -> str | None:
        project, environment, _, changes, *_ = self.gated
        place = EnvironmentChanges(project, environment, changes or ())
        plan, others = add_in_steps([place], answers, caller=caller)
        payload = {"planId": plan.pk, "milestoneId": plan.milestones.all()[0].pk}
        start = ProposedChange(plan.flag.name, "startMilestone", payload)
        return NeedsChangeRequest(self.gated._replace(changes=[*others, start])).settle(answers, caller)


def find_own(places: Sequence[EnvironmentChanges], caller: Caller) -> list[EnvironmentChanges]:
    """The places of readable projects. Equal changes in several are made once, such as those of a shared segment."""
    own: list[EnvironmentChanges] = []
    for place in places:
        if caller.can_read(place.project) and all(place.changes != other.changes for other in own):
            own.append(place)
    if not own:
        raise ValidationError(NOT_LATER)
    return own


def find_postponed(project_id: str, before: Mapping[str, Definitions]) -> list[EnvironmentChanges]:
    """The changes in the project's environments. The same change in all of them is made once."""
    places: list[EnvironmentChanges] = []
    for name, old in before.items():
        changes = _find_changes(project_id, name, old)
        if changes and all(changes != place.changes for place in places):
            places.append(EnvironmentChanges(project_id, name, changes))
    return places


def _find_changes(project_id: str, environment: str, before: Definitions) -> list[ProposedChange]:
    after = read_definitions([project_id], environment)
    names = {flag["name"] for flag in before.flags}
    archived = Flag.objects.archived().filter(project=project_id, name__in=names)
    names_archived = set(archived.values_list("name", flat=True))
    return derive_changes(before, after, names_archived, answers_only=False) or []


@transactional
def save_later(places: Sequence[EnvironmentChanges], at: datetime, *, caller: Caller) -> list[ChangeRequest]:
    """A scheduled request for each place. Raises ValidationError, NoAccess, and the errors of proposing."""
    check_time(at)
    requests = [send_changes(*place, caller=caller) for place in places]
    return [
        schedule_request(request.project_id, request.pk, at, caller=caller)
        if request.state == ChangeRequest.State.APPROVED
        else request
        for request in requests
    ]


def parse_utc(text: str) -> datetime:
    """Parses a time; without a zone, as sent by browsers without JavaScript, it is UTC. Raises ValidationError."""
    try:
        parsed = parse_datetime(text)
        if parsed is not None:
            return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        pass
    raise ValidationError.at("scheduledAt", "must be a time")
