"""Postpones a form: its changes become a scheduled request, approved by its author's own permissions."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from django.utils.dateparse import parse_datetime

from flagadmin.core.change_checks import Refusal
from flagadmin.core.change_checks.override import LATER, STEPS, WHEN
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import AppError, ValidationError
from groups.access import Caller
from projects.definitions import Definitions
from releases.derive import EnvironmentChanges, ProposedChange, derive_changes
from releases.gate_refusal import Gated, NeedsChangeRequest
from releases.models import ChangeRequest
from releases.plans.add import add_in_steps, save_in_steps
from releases.requests.propose import add_changes, send_changes
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
        self.problem = "" if places else NOT_LATER

    @property
    def message(self) -> str:
        return self.problem

    def as_app_error(self) -> AppError:
        return ValidationError(self.message)

    def unite(self, refusals: Sequence[Refusal]) -> Refusal:
        """Combines them with those of other projects. Those that need a request come first."""
        others = [refusal for refusal in refusals if not isinstance(refusal, Postponed)]
        places = [place for refusal in refusals if isinstance(refusal, Postponed) for place in refusal.places]
        return others[0] if others else Postponed(places)


class StepsNeedRequest(NeedsChangeRequest):
    """A form that may ask for steps in a place that needs a request: the request starts the plan, which is
    added at once.
    """

    problem = ""

    @property
    def message(self) -> str:
        return self.problem or super().message


# Following the choice in the form ------------------------------------------------------------------------------


def settle(error: Refusal, answers: Mapping[str, str], caller: Caller) -> str | None:
    """Makes a request or a plan of the refused changes, as chosen. Returns its URL.

    None if nothing is chosen yet, or if it fails: then the refusal has the ``problem``.
    """
    in_steps = answers.get(WHEN) == STEPS
    try:
        if isinstance(error, StepsNeedRequest) and in_steps and _is_proposed(answers):
            return _propose_steps(error.gated, answers, caller)
        if isinstance(error, Postponed) and error.places:
            return _start_steps(error, answers, caller) if in_steps else _schedule(error, answers, caller)
    except AppError as problem:
        error.problem = problem.message  # type: ignore[attr-defined]  # of both
        return None
    return _propose(error.gated, answers, caller) if isinstance(error, NeedsChangeRequest) else None


def _is_proposed(answers: Mapping[str, str]) -> bool:
    return not {"send_for_review", "add_to_request"}.isdisjoint(answers)


def _propose(gated: Gated, answers: Mapping[str, str], caller: Caller) -> str | None:
    """The form may give the request a title and a note."""
    project, environment, changes = gated.project, gated.environment, gated.changes
    if changes is None or not _is_proposed(answers):
        return None
    if "send_for_review" in answers:
        titled = {"title": answers.get("request_title", ""), "note": answers.get("request_note", "")}
        request = send_changes(project, environment, changes, **titled, caller=caller)
    else:
        replaces = gated.replaces_strategies
        request = add_changes(project, environment, changes, replaces_strategies=replaces, caller=caller)
    return f"/projects/{project}/change-requests/{request.pk}/"


@transactional
def _propose_steps(gated: Gated, answers: Mapping[str, str], caller: Caller) -> str | None:
    place = EnvironmentChanges(gated.project, gated.environment, gated.changes or ())
    plan, others = add_in_steps([place], answers, caller=caller)
    payload = {"planId": plan.pk, "milestoneId": plan.milestones.all()[0].pk}
    start = ProposedChange(plan.flag.name, "startMilestone", payload)
    return _propose(gated._replace(changes=[*others, start]), answers, caller)


def _start_steps(error: Postponed, answers: Mapping[str, str], caller: Caller) -> str:
    places, error.places = error.places, ()  # if it fails, the page does not ask again
    plan = save_in_steps(places, answers, caller=caller)
    return f"/projects/{plan.flag.project_id}/features/{plan.flag.name}/"


def _schedule(error: Postponed, answers: Mapping[str, str], caller: Caller) -> str:
    places = find_own(error.places, caller)
    first, *_ = save_later(places, parse_utc(answers.get(LATER, "")), caller=caller)
    return f"/projects/{first.project_id}/change-requests/{first.pk}/"


def find_own(places: Sequence[EnvironmentChanges], caller: Caller) -> list[EnvironmentChanges]:
    """The places of readable projects. Equal changes in several are made once, such as those of a shared segment."""
    own: list[EnvironmentChanges] = []
    for place in places:
        if caller.can_read(place.project) and all(place.changes != other.changes for other in own):
            own.append(place)
    if not own:
        raise ValidationError(NOT_LATER)
    return own


def find_postponed(
    project_id: str,
    before: Mapping[str, Definitions],
    after: Mapping[str, Definitions],
    archived: Collection[str],
) -> list[EnvironmentChanges]:
    """The changes in the project's environments. The same change in all of them is made once."""
    places: list[EnvironmentChanges] = []
    for name, old in before.items():
        changes = derive_changes(old, after[name], archived, answers_only=False)
        if changes and all(changes != place.changes for place in places):
            places.append(EnvironmentChanges(project_id, name, changes))
    return places


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
