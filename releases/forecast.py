"""What scheduled requests will have changed by a moment ahead, predicted in the order in which they are applied."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from flagadmin.core.errors import AppError, NotFound
from playground.comparison.future import Forecast
from playground.engine.definitions import FlagDefinition, SegmentDefinition
from projects.flags.environments.toggle import find_project_environment
from projects.history.past import Changed
from releases.models import Change, ChangeRequest, Schedule
from releases.predicted import Predicted
from releases.requests.conflicts import find_conflict
from releases.requests.impact import make_change, measure_difference, read_near
from releases.requests.review import refusal_for

Segments = dict[int, SegmentDefinition]


def forecast(projects: Collection[str], environment: str, at: datetime) -> Forecast:
    """The stored flags with all that is scheduled until then. A few queries for each change."""
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
    return schedules.order_by("at", "id").select_related("request").prefetch_related("request__changes")


class _Ahead:
    """What is stored near the requests, and what becomes of it: states of projects, which share their segments."""

    def __init__(self, environment: str, requests: Iterable[ChangeRequest]) -> None:
        self.environment = environment
        self.states = _read_states(requests)
        self.segments: Segments = {}
        for state in self.states.values():
            self.segments |= state.segments
        for state in self.states.values():
            state.segments = self.segments
        self.stored = {project: state.copy() for project, state in self.states.items()}
        self.stored_segments = dict(self.segments)

    def apply(self, schedule: Schedule) -> str:
        """Makes all changes of the request, or none. Says what becomes of it."""
        request, at = schedule.request, schedule.at.astimezone(UTC)
        which = f"Request {request.pk}{f' ({request.title})' if request.title else ''}"
        when = f"{at.day} {at:%b %Y at %H:%M} UTC"
        try:
            obstacle = self._find_conflict(request) or self._make(schedule)
        except AppError as error:
            return f"{which} is due on {when}, and would fail: {error.message}"
        if obstacle:
            return f"{which} is due on {when}, and would be suspended: {obstacle}"
        return f"{which} is applied on {when}."

    def _find_conflict(self, request: ChangeRequest) -> str:
        stored, state = self.stored[request.project_id], self.states[request.project_id]
        for change in request.changes.all():
            if _read(stored, change) != _read(state, change):
                return "another request changes the same before."
            if conflict := find_conflict(request, change):
                return conflict
        return ""

    def _make(self, schedule: Schedule) -> str:
        """Returns why the request would be suspended. Raises ValidationError."""
        request = schedule.request
        state = self.states[request.project_id]
        before = state.copy()
        was_touched = bool(self._differing(request.project_id)) or self.segments != self.stored_segments
        flags, segments = dict(state.flags), dict(self.segments)
        try:
            for number, change in enumerate(request.changes.all(), 1):
                make_change(state, change, number)
            if was_touched and (obstacle := self._find_drift(schedule, before)):
                self._restore(state, flags, segments)
                return obstacle
        except AppError:
            self._restore(state, flags, segments)
            raise
        return ""

    def _find_drift(self, schedule: Schedule, before: Predicted) -> str:
        request, after = schedule.request, before.copy()
        for number, change in enumerate(request.changes.all(), 1):
            make_change(after, change, number, to_review=True)
        states = before.definitions(), after.definitions()
        measured = measure_difference(self.environment, *states, now=schedule.at)
        return refusal_for(request, measured.document())

    def _restore(self, state: Predicted, flags: dict[str, FlagDefinition], segments: Segments) -> None:
        state.flags = flags
        self.segments.clear()
        self.segments.update(segments)

    def _differing(self, project: str) -> set[str]:
        state = self.states[project]
        return {name for name, flag in self.stored[project].flags.items() if state.flags.get(name) != flag}

    def difference(self) -> Changed:
        names: set[str] = set()
        flags: list[FlagDefinition] = []
        for project, state in self.states.items():
            differing = self._differing(project)
            names |= differing
            flags += [state.flags[name] for name in differing & state.flags.keys()]
        old, new = self.stored_segments, self.segments
        changed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
        return Changed(frozenset(names), flags, dict(new), frozenset(changed))


def _read_states(requests: Iterable[ChangeRequest]) -> dict[str, Predicted]:
    """By project, what all of its requests touch."""
    by_project: dict[str, list[ChangeRequest]] = defaultdict(list)
    for request in requests:
        by_project[request.project_id].append(request)
    states = {}
    for project, scheduled in by_project.items():
        changes = [change for request in scheduled for change in request.changes.all()]
        place = find_project_environment(project, scheduled[0].environment_id)
        states[project] = Predicted(place, read_near(scheduled[0], changes))
    return states


def _read(state: Predicted, change: Change) -> Any:
    """What the change was made from, in this state."""
    try:
        return _READS[change.action](state, change) if change.action in _READS else None
    except NotFound:
        return None


def _strategy(state: Predicted, change: Change) -> Any:
    strategy = state.strategy(change.feature, change.payload["id"])
    return {key: value for key, value in strategy.items() if key != "sortOrder"}


_READS: Mapping[str, Callable[[Predicted, Change], Any]] = {
    "updateEnabled": lambda state, change: state.flag(change.feature)["enabled"],
    "addStrategy": lambda state, change: change.feature in state.flags,
    "archiveFeature": lambda state, change: change.feature in state.flags,
    "updateStrategy": _strategy,
    "deleteStrategy": _strategy,
    "reorderStrategy": lambda state, change: [
        each["id"] for each in state.flag(change.feature)["strategies"]
    ],
    "patchVariant": lambda state, change: state.flag(change.feature)["variants"],
    "addDependency": lambda state, change: state.flag(change.feature)["dependencies"],
    "deleteDependency": lambda state, change: state.flag(change.feature)["dependencies"],
    "updateSegment": lambda state, change: state.segments.get(change.payload["id"]),
    "deleteSegment": lambda state, change: state.segments.get(change.payload["id"]),
}
