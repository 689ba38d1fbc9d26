"""Predicts the effect of scheduled requests up to a future moment, in order of application."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime

from django.utils import timezone

from flagadmin.core.change_checks import BrokenExpectations
from flagadmin.core.errors import AppError, Conflict, ValidationError
from groups.access import Caller
from playground.comparison.compare import Forecast
from playground.comparison.states import compile_definitions
from playground.comparison.who_changes import find_differing
from playground.engine.definitions import SegmentDefinition
from playground.saved_contexts.effects import find_effects
from projects.definitions import Definitions
from projects.fingerprint import Fingerprint
from projects.history.definitions_at import Changed
from projects.models import Project, ProjectEnvironment
from releases.models import ChangeRequest, Schedule
from releases.requests.conflicts import find_conflict, find_missing_environment, is_stuck
from releases.requests.impact import (
    Document,
    make_change,
    measure_difference,
    measure_impact,
    read_near,
)
from releases.requests.review import explain_refusal, take_request_fingerprint
from releases.schedules.due import explain_lapse
from releases.targets import Predicted

Segments = dict[int, SegmentDefinition]


def forecast(projects: Collection[str], environment: str, at: datetime) -> Forecast:
    """The stored flags with everything scheduled until then. A few queries for each change."""
    schedules = list(_pending(projects, environment, at))
    ahead = _Ahead(environment, [schedule.request for schedule in schedules])
    notes = [ahead.apply(schedule) for schedule in schedules]
    return Forecast(ahead.difference(), notes)


def _pending(projects: Collection[str], environment: str, at: datetime) -> Iterable[Schedule]:
    schedules = Schedule.objects.filter(
        status=Schedule.Status.PENDING,
        at__lte=at,
        request__state=ChangeRequest.State.SCHEDULED,
        request__project__in=list(projects),
        request__environment=environment,
    )
    return schedules.order_by("at", "id").select_related("request", "by").prefetch_related("request__changes")


class _Ahead:
    """The flags near the requests, stored and changed: states of projects, which share their segments."""

    def __init__(self, environment: str, requests: Iterable[ChangeRequest]) -> None:
        self.environment = environment
        self.states = _read_states(requests)
        self.changed_projects: set[str] = set()
        refusing = Project.objects.filter(pk__in=self.states, refuse_broken_expectations=True)
        self.refusing = set(refusing.values_list("pk", flat=True))
        """The projects that refuse to break an expectation."""
        self.segments: Segments = {}
        for state in self.states.values():
            self.segments |= state.segments
        for state in self.states.values():
            state.segments = self.segments
        self.stored = dict(self.states)
        self.stored_segments = self.segments

    def apply(self, schedule: Schedule) -> str:
        """Makes all changes of the request, or none. Describes the result."""
        request, at = schedule.request, schedule.at.astimezone(UTC)
        which = f"Request {request.pk}{f' ({request.title})' if request.title else ''}"
        when = f"{at.day} {at:%b %Y at %H:%M} UTC"
        try:
            obstacle = (
                explain_lapse(schedule, timezone.now())
                or find_missing_environment(request)
                or self._find_conflict(request)
                or self._make(schedule)
            )
        except AppError as error:
            return f"{which} is due on {when}, and would fail: {error.message}"
        if obstacle:
            return f"{which} is due on {when}, and would be suspended: {obstacle}"
        return f"{which} is applied on {when}."

    def _find_conflict(self, request: ChangeRequest) -> str:
        """The conflict that applying it would find in the state at that time."""
        for change in request.changes.all():
            if is_stuck(change, self.states[request.project_id]):
                return find_conflict(request, change) or "another request changes the same before."
        return ""

    def _make(self, schedule: Schedule) -> str:
        """Returns the reason for suspending the request. Raises ValidationError, Conflict."""
        project = schedule.request.project_id
        after = self.states[project].copy()
        changes = list(schedule.request.changes.all())
        for number, change in enumerate(changes, 1):
            make_change(after, change, number)
        fingerprint = take_request_fingerprint(schedule.request, changes, after)
        if obstacle := self._find_drift(schedule, fingerprint):
            return obstacle
        self._check_expectations(project, after)
        self._keep(project, after)
        return ""

    def _is_touched(self, project: str) -> bool:
        return project in self.changed_projects or self.segments != self.stored_segments

    def _find_drift(self, schedule: Schedule, fingerprint: Fingerprint) -> str:
        try:
            impact = self._measure(schedule)
        except ValidationError:
            impact = None
        return explain_refusal(schedule.request, impact, fingerprint)

    def _measure(self, schedule: Schedule) -> Document:
        """Measures its effect on users. Reuses the last measurement if no earlier request changes anything."""
        request = schedule.request
        if not self._is_touched(request.project_id):
            return measure_impact(request, now=schedule.at).document
        before = self.states[request.project_id]
        after = before.copy()
        for number, change in enumerate(request.changes.all(), 1):
            make_change(after, change, number, to_review=True)
        states = before.definitions(), after.definitions()
        return measure_difference(self.environment, *states, now=schedule.at).document()

    def _check_expectations(self, project: str, after: Predicted) -> None:
        """Raises Conflict if the project refuses the broken expectations."""
        if project not in self.refusing:
            return
        states = self.states[project].definitions(), after.definitions()
        old, new = compile_definitions(self.environment, *states)
        broken = find_effects(Caller.system(), old, new, flags=find_differing(old, new)).broken
        if number := sum(check.expectation.enforced_in == project for check in broken):
            raise Conflict(BrokenExpectations([project], (), (), number).message)

    def _keep(self, project: str, after: Predicted) -> None:
        self.states[project], self.segments = after, after.segments
        self.changed_projects.add(project)
        for other in self.states.keys() - {project}:
            self.states[other] = self.states[other].copy()
            self.states[other].take_segments(after)

    def difference(self) -> Changed:
        def gather(states: Mapping[str, Predicted], segments: Segments) -> Definitions:
            return Definitions([flag for state in states.values() for flag in state.flags.values()], segments)

        return Changed.between(gather(self.stored, self.stored_segments), gather(self.states, self.segments))


def _read_states(requests: Iterable[ChangeRequest]) -> dict[str, Predicted]:
    """Reads everything that the requests touch in each project that has their environment."""
    by_project: dict[str, list[ChangeRequest]] = defaultdict(list)
    for request in requests:
        by_project[request.project_id].append(request)
    states = {}
    for project, scheduled in by_project.items():
        changes = [change for request in scheduled for change in request.changes.all()]
        links = ProjectEnvironment.objects.filter(project=project, environment=scheduled[0].environment_id)
        if (link := links.first()) is not None:
            states[project] = Predicted(link, read_near(scheduled[0], changes))
    return states
