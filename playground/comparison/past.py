"""The compiled flags at another moment: past changes are read from versions, future ones are forecast."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from django.conf import settings
from rest_framework import serializers

from flagadmin.core.caches import ByteCache
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.errors import Problem, check_problems
from flagadmin.core.server.memory import collector_paused
from groups.access import Caller
from playground.comparison.compare import Forecast, forecast
from playground.comparison.states import Body, Scope, State, StateKind, StoredFlags, find_users
from playground.engine.compilation import compile_snapshot, recompile
from playground.engine.snapshot import Snapshot
from playground.queries import explain_empty, read_known_revisions, refuse_too_many
from playground.request import PlaygroundRequest
from playground.response.snapshot import ResponseSnapshot, compile_playground
from playground.snapshot_cache import get_cached_snapshot, load_snapshot_at
from projects.definitions import Definitions, read_definitions
from projects.history.definitions_at import (
    Changed,
    explain_unknown,
    flags_then,
    is_in_future,
    read_changed_since,
    read_deleted_since,
    read_outside_changes,
    read_since,
)
from projects.models import Dependency, Flag
from projects.revision import read_revisions


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment, and the requested projects of that time. If it is past, some may have been deleted."""

    at: datetime
    projects: frozenset[str]
    _read: dict[str, Forecast] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_ahead(self) -> bool:
        return is_in_future(self.at)

    def flags(self, names: Iterable[str], environment: str) -> Definitions:
        """Reads a few flags with their parents: faster than reading all of them."""
        if not self.is_ahead:
            return flags_then(names, self.projects, environment, self.at)
        changed = self.changed(environment)
        listed = set(names)
        coming = {flag["name"]: flag for flag in changed.flags}
        listed.update(p["feature"] for n in listed & coming.keys() for p in coming[n]["dependencies"])
        listed.update(Dependency.objects.filter(flag__name__in=listed).values_list("parent__name", flat=True))
        return changed.applied(read_definitions(self.projects, environment, flags=listed), listed)

    def has_read(self, environment: str) -> bool:
        return environment in self._read

    def changed(self, environment: str) -> Changed:
        """The changes between the moment and now. Read once."""
        return self._forecast(environment).changed

    def _forecast(self, environment: str) -> Forecast:
        if environment not in self._read:
            projects = sorted(self.projects)
            self._read[environment] = (
                forecast(projects, environment, self.at)
                if self.is_ahead
                else Forecast(read_changed_since(projects, environment, self.at))
            )
        return self._read[environment]

    def notes(self, environments: Iterable[str]) -> list[str]:
        """Lists sentences about changes until a future moment, or about changes that obscure a past one.

        The latter left no event, and there were no versions yet.
        """
        if self.is_ahead:
            return [note for name in environments for note in self._forecast(name).notes]
        return [
            f"{change.project} was changed outside flagadmin {_format_period(change.first, change.last)}. "
            "What those changes replaced is not known."
            for change in read_outside_changes(self.projects, self.at)
        ]


def find_readable_past(
    caller: Caller,
    projects: list[str] | None,
    environments: Mapping[str, str],
    times: Mapping[str, datetime],
) -> tuple[dict[str, int], dict[str, Moment]]:
    """The revisions of the requested projects (None: all), and a moment for each of the `times`.

    `environments` and `times` are keyed by JSON path. Only admins may see the contents of a project that has been
    deleted since, even if a new project has its name. Raises ValidationError for an unknown moment, and with every
    project and environment that does not exist and did not then.
    """
    kept_since = read_since()
    check_problems(
        Problem(f"{path.rpartition('.')[0]}.at".lstrip("."), reason)
        for path, at in times.items()
        if (reason := explain_unknown(at, kept_since))
    )
    since = {at: read_deleted_since(at) for at in set(times.values())}
    deleted = {path: since[at] for path, at in times.items()}
    deleted_projects = frozenset(
        chain.from_iterable(since_deleted.projects for since_deleted in deleted.values())
    )
    wanted = projects
    if projects is not None and caller.is_admin and deleted_projects.intersection(projects):
        former = deleted_projects - read_revisions(deleted_projects).keys()
        wanted = [project for project in projects if project not in former]
    present = {
        path: name
        for path, name in environments.items()
        if path not in deleted or name not in deleted[path].environments
    }
    query = PlaygroundRequest(list(environments.values()), wanted, {}, {})
    current = read_known_revisions(caller, query, present)
    moments = {}
    for path, at in times.items():
        then = frozenset(current if projects is None or not caller.is_admin else projects)
        if not caller.is_admin:
            then -= deleted[path].projects
        elif projects is None:
            then |= deleted[path].projects
        moments[path] = Moment(at, then)
    return current, moments


cache = ByteCache[Hashable, ResponseSnapshot]()
"""Snapshots of single moments, for users who look at one for a while."""


@collector_paused
def compile_past(current: Mapping[str, int], environment: str, moment: Moment) -> ResponseSnapshot:
    """The flags at a moment. Shares everything that has not changed since with the present, at `current` revisions."""
    key = (environment, moment.at, moment.projects, tuple(sorted(current.items())))
    snapshot = None if moment.is_ahead else cache.get(key)
    if snapshot is None:
        snapshot = _compile(environment, _read(current, environment, moment))
        if not moment.is_ahead:
            cache.put(key, snapshot, limit=settings.SNAPSHOT_CACHE_BYTES // 8)
    return snapshot


@collector_paused
def compile_changed(current: Mapping[str, int], environment: str, changed: Changed) -> ResponseSnapshot:
    """The flags with these changes, read at `current` revisions. Shares all others with the present."""
    present = load_snapshot_at(current, environment)
    return _compile(environment, _replace(current, environment, changed, present))


def _compile(environment: str, then: "Then") -> ResponseSnapshot:
    documents, present, replaced = then
    return compile_playground(
        documents.flags,
        documents.segments,
        environment=environment,
        earlier=present,
        unchanged=present.snapshot.sizes if present else (),
        replaced=replaced,
    )


@collector_paused
def compile_past_state(current: Mapping[str, int], environment: str, moment: Moment) -> Snapshot:
    """The flags at a moment, like `compile_past`, for comparison instead of output."""
    documents, present, then = _read(current, environment, moment)
    return recompile(
        documents.flags,
        documents.segments,
        environment=environment,
        earlier=present.snapshot if present else None,
        unchanged=present.snapshot.sizes if present else (),
        replaced=then,
    ).snapshot


@dataclass(frozen=True)
class PastState(State):
    """The state stored at a moment."""

    moment: Moment

    can_read_few = True

    @property
    def at(self) -> datetime:
        return self.moment.at

    def notes(self) -> Sequence[str]:
        return self.moment.notes([self.environment])

    def within(self, scope: Scope, path: str) -> State:
        return replace(self, moment=Moment(self.at, scope.then))

    def compile(self, stored: StoredFlags) -> Snapshot:
        return compile_past_state(stored.projects, self.environment, self.moment)

    def apply(self, stored: Definitions, names: Collection[str]) -> Definitions:
        return self.moment.changed(self.environment).applied(stored, names)

    def read_few(self, projects: Mapping[str, int], names: Collection[str]) -> Definitions:
        return self.moment.flags(names, self.environment)


def _make_field() -> serializers.DateTimeField:
    return serializers.DateTimeField(
        required=False,
        help_text="A moment in the past, or ahead with all that is scheduled until then. In UTC without an offset.",
    )


def _read_past(caller: Caller, body: Body) -> State:
    return PastState(body["environment"], Moment(body["at"], frozenset()))


PAST = StateKind("at", _make_field, _read_past)


class Then(NamedTuple):
    """The ``documents`` of a moment: all of them, or with a ``present`` those that ``replaced`` parts of it."""

    documents: Definitions
    present: ResponseSnapshot | None
    replaced: frozenset[str] = frozenset()


@consistent_reads()
def _read(current: Mapping[str, int], environment: str, moment: Moment) -> Then:
    """Builds on the present if this worker has compiled it or needs it anyway: most of it is usually unchanged."""
    present, is_first = get_cached_snapshot(current, environment), not moment.has_read(environment)
    changed = moment.changed(environment)
    if present is None and is_first:
        rest = _list_unchanged(current, changed)
        if len(rest) < len(changed.names):
            read = read_definitions(current, environment, flags=rest) if rest else Definitions([], {})
            return Then(changed.applied(read), None)
    return _replace(current, environment, changed, present or load_snapshot_at(current, environment))


def _replace(
    current: Mapping[str, int], environment: str, changed: Changed, present: ResponseSnapshot
) -> Then:
    users = find_users(present.snapshot, changed.changed_segments) - changed.names
    if not users:
        return Then(Definitions(changed.flags, changed.segments), present, changed.names)
    unchanged = read_definitions(current, environment, flags=users)
    flags = [*changed.flags, *unchanged.flags]
    return Then(Definitions(flags, unchanged.segments | changed.segments), present, changed.names | users)


def _list_unchanged(current: Mapping[str, int], changed: Changed) -> list[str]:
    names = Flag.objects.active().filter(project_id__in=list(current)).values_list("name", flat=True)
    return [name for name in names if name not in changed.names]


def _format_period(first: datetime, last: datetime) -> str:
    if first == last:
        return f"on {first:%d %B %Y at %H:%M:%S} UTC"
    return f"between {first:%d %B %Y, %H:%M:%S} and {last:%d %B %Y, %H:%M:%S} UTC"


def compile_flag_then(
    caller: Caller, query: PlaygroundRequest, paths: Mapping[str, str], flag: str
) -> dict[str, Snapshot]:
    """One flag and its parents at the request's moment, by environment. Raises the errors of `find_readable_past`."""
    assert query.at is not None
    _, moments = find_readable_past(caller, query.projects, paths, dict.fromkeys(paths, query.at))
    read = {name: moments[path].flags([flag], name) for path, name in paths.items()}
    return {
        name: compile_snapshot(then.flags, then.segments, environment=name) for name, then in read.items()
    }


def describe_request(caller: Caller, query: PlaygroundRequest, paths: Mapping[str, str]) -> list[str]:
    """Lists notes about the request's moment. Raises ValidationError like `find_readable_past`."""
    assert query.at is not None
    _, moments = find_readable_past(caller, query.projects, paths, dict.fromkeys(paths, query.at))
    return next(iter(moments.values())).notes(paths.values())


def load_snapshots(
    caller: Caller, query: PlaygroundRequest, paths: Mapping[str, str], *, contexts: int | None = None
) -> tuple[dict[str, ResponseSnapshot], list[str]]:
    """The flags of a request by environment, and notes about its moment.

    `paths` are the environments by their JSON paths. Raises ValidationError with all unknown names, or if evaluating
    this number of `contexts` would be too much.
    """
    if query.at is None:
        current = read_known_revisions(caller, query, paths)
        if contexts is not None:
            limit = settings.PLAYGROUND_MAX_EVALUATIONS
            refuse_too_many(current, environments=len(paths), contexts=contexts, limit=limit)
        snapshots = {name: load_snapshot_at(current, name) for name in paths.values()}
        return snapshots, list(explain_empty(query.projects, snapshots))
    current, moments = find_readable_past(caller, query.projects, paths, dict.fromkeys(paths, query.at))
    moment = next(iter(moments.values()))
    return {name: compile_past(current, name, moment) for name in paths.values()}, moment.notes(
        paths.values()
    )
