"""Writes flags as code: everything in one transaction, or nothing. A plan is the same work, rolled back."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from flagadmin.core.change_options import changing, get_comment
from flagadmin.core.db.transactions import run_and_roll_back, transactional
from flagadmin.core.document import Document
from flagadmin.core.errors import Conflict, NameExists, Problem, ValidationError
from flagadmin.core.unreadable_values import check_values
from groups.access import Caller
from importer.apply.execute import import_part
from importer.as_code.documents import (
    Part,
    PartBuilder,
    keep_spelling,
    make_field_entry,
    make_segment_entry,
    read_directory,
    split_flags,
)
from importer.as_code.schemas import Directory
from importer.bulk_work import bulk_work
from importer.plan.import_plan import Action, Plan, read_flags
from importer.report import make_flag_reports
from projects.access import access_project, lock_projects
from projects.context_fields.actions import create_context_field, update_context_field
from projects.definitions import Definitions, read_definitions
from projects.flags.archive.actions import archive_flags_of_projects
from projects.models import ContextField, Flag, ProjectEnvironment, Segment, Strategy
from projects.segments.actions import create_segment, update_segment
from projects.segments.lists import change_documents
from projects.strategies.constraint_rules import make_constraint
from releases.derive import ProposedChange, derive_changes
from releases.gate_refusal import NeedsChangeRequest
from releases.requests.propose import propose_once


def make_line(action: str, kind: str, name: str, project: str | None) -> Document:
    return {"action": action, "kind": kind, "name": name} | ({"project": project} if project else {})


def write_field(entry: Mapping[str, Any], caller: Caller) -> Iterator[Document]:
    name, project = entry["name"], entry.get("project") or None
    values = {
        "description": entry.get("description") or None,
        "stickiness": entry.get("stickiness", False),
        "sort_order": entry.get("sortOrder", 0),
        "legal_values": entry.get("legalValues", []),
    }
    stored = ContextField.objects.filter(name=name).first()
    if stored is None:
        create_context_field(values | {"name": name, "project_id": project}, caller=caller)
        yield make_line("create", "context field", name, project)
    elif stored.project_id != project:
        raise ValidationError.at("project", _describe_owner(stored.project_id))
    elif any(getattr(stored, key) != value for key, value in values.items()):
        before = make_field_entry(stored)
        after = make_field_entry(update_context_field(name, values, caller=caller, project=project))
        yield from _list_changed("context field", name, project, before, after)


def write_segment(entry: Mapping[str, Any], caller: Caller, *, may_change: bool) -> Iterator[Document]:
    name, project = entry["name"], entry.get("project") or None
    stored = Segment.objects.filter(name=name).first()
    constraints = _read_constraints(entry, stored)
    values: dict[str, Any] = {"description": entry.get("description") or "", "constraints": constraints}
    if stored is None:
        create_segment(values | {"name": name, "project_id": project}, caller=caller)
        yield make_line("create", "segment", name, project)
    elif stored.project_id != project:
        raise ValidationError.at("project", _describe_owner(stored.project_id))
    elif may_change and any(getattr(stored, key) != value for key, value in values.items()):
        before = make_segment_entry(stored)
        after = make_segment_entry(update_segment(stored.pk, values, caller=caller))
        before, after = change_documents(before, after)
        yield from _list_changed("segment", name, project, before, after)


def _read_constraints(entry: Mapping[str, Any], stored: Segment | None) -> list[Any]:
    constraints: list[Any] = [make_constraint(constraint) for constraint in entry["constraints"]]
    return constraints if stored is None else keep_spelling(constraints, stored.constraints)


def find_users_elsewhere(
    segments: Iterable[Mapping[str, Any]], projects: Collection[str], caller: Caller
) -> list[tuple[str, str]]:
    """Other readable projects and their environments with flags that use a changed segment of all projects."""
    wanted = {entry["name"]: entry for entry in segments}
    changed = [
        row.pk
        for row in Segment.objects.filter(name__in=wanted, project=None)
        if _read_constraints(wanted[row.name], row) != row.constraints
    ]
    flags = Flag.objects.active().readable_by(caller).exclude(project__in=projects)
    users = (
        Strategy.objects.filter(segments__in=changed, flag__in=flags) if changed else Strategy.objects.none()
    )
    return sorted({*users.values_list("flag__project", "environment")})


def _describe_owner(project: str | None) -> str:
    return f"must be {project}, to which it belongs" if project else "must be left out: it is of all projects"


def _list_changed(
    kind: str, name: str, project: str | None, before: Document, after: Document
) -> Iterator[Document]:
    changes = [
        {"part": key, "before": _format_value(before.get(key)), "after": _format_value(after.get(key))}
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]
    if changes:
        yield make_line("change", kind, name, project) | {"changes": changes}


def _format_value(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


Place = tuple[str, str]
"""A project and one of its environments."""
MAX_TRIES = 100
"""The maximum number of environments that need a change request; each costs an attempt."""
TITLE = "Flags as code"


class OutdatedPlan(Conflict):
    """409: something that the plan depends on has changed since."""


@dataclass(frozen=True)
class HeldParts:
    """The parts that wait for change requests: environments, and with ``shared`` the parts common to all
    environments.
    """

    places: tuple[Place, ...] = ()
    shared: bool = False

    def with_place(self, key: Place) -> "HeldParts | None":
        """Adds the place whose changes are refused. None if nothing more can wait."""
        if key not in self.places:
            return replace(self, places=(*self.places, key))
        return None if self.shared else replace(self, shared=True)

    def in_project(self, project: str) -> set[str]:
        return {environment for owner, environment in self.places if owner == project}


@dataclass
class WrittenChanges:
    """The written changes, and the environments whose results changed: before and after."""

    fingerprint: str = ""
    lines: list[Document] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    requests: list[Document] = field(default_factory=list)
    states: dict[Place, tuple[Definitions, Definitions]] = field(default_factory=dict)

    def add(self, plan: Plan) -> None:
        for report in make_flag_reports(plan):
            line = make_line(report.action, "flag", report.name, plan.project)
            if report.action == Action.SKIP:
                self.notes.append(report.reason)
            elif report.action == Action.CREATE:
                self.lines.append(line | {"environment": plan.environment, "summary": report.summary})
            elif report.action == Action.CHANGE:
                self.lines.append(line | {"environment": plan.environment, "changes": report.changes})
        self.notes += [note for note in plan.notes if note not in self.notes]


@bulk_work
def plan_directory(directory: Directory, *, caller: Caller) -> WrittenChanges:
    """Plans the changes of applying it now. Raises the errors of applying it, except for a missing comment."""

    def attempt(held: HeldParts) -> WrittenChanges:
        return run_and_roll_back(lambda: _write(directory, held, caller=caller))

    with changing(comment=get_comment() or "Planned, and undone"):
        return _widen_until_accepted(attempt, directory)


@bulk_work
def apply_directory(directory: Directory, *, caller: Caller) -> WrittenChanges:
    """Writes the changes, and makes a change request for each environment that needs one.

    Raises NotFound, NoAccess, ValidationError, InvalidOperation, and OutdatedPlan if the plan's fingerprint differs.
    """
    return _widen_until_accepted(lambda held: _write(directory, held, caller=caller), directory)


def _widen_until_accepted(
    attempt: Callable[[HeldParts], WrittenChanges], directory: Directory
) -> WrittenChanges:
    """Retries while holding back parts that need a change request, until no other part needs one."""
    held = HeldParts()
    for _ in range(MAX_TRIES):
        try:
            return attempt(held)
        except NeedsChangeRequest as refusal:
            wider = held.with_place((refusal.gated.project, refusal.gated.environment))
            if wider is None:
                raise
            held = wider
    raise Conflict(f"More than {MAX_TRIES} environments need change requests.")


@transactional
def _write(directory: Directory, held: HeldParts, *, caller: Caller) -> WrittenChanges:
    if not directory.skips_requests:
        caller = caller.asking(skips_requests=False)
    for project in directory.projects:
        access_project(caller, project)
    lock_projects(caller, directory.projects)
    written = WrittenChanges(fingerprint=take_fingerprint(directory))
    if directory.fingerprint not in ("", written.fingerprint):
        raise OutdatedPlan("Something that this plan is about was changed after it was made. Plan again.")
    stored = {
        (entry["project"], entry["flag"]["name"]): entry["flag"]
        for entry in read_directory(directory.projects, caller=caller)["flags"]
    }
    directory = replace(directory, same=directory.find_same(stored))
    if directory.is_stored:
        return written
    places = list(
        ProjectEnvironment.objects.filter(project__in=directory.projects)
        .order_by("project", "environment")
        .values_list("project_id", "environment_id")
    )
    # A segment of all projects also changes results in other projects.
    answering = [*places, *find_users_elsewhere(directory.segments, directory.projects, caller)]
    before = _read(answering)
    _write_parts(directory, written, places, held, caller)
    for number, index in enumerate(held.places):
        # Parts common to all environments are proposed once.
        shared = held.shared and number == 0
        if request := _propose(directory, index, places, shared, caller):
            written.requests.append(request)
    after = _read(answering)
    written.states = {
        place: (before[place], after[place]) for place in answering if before[place] != after[place]
    }
    return written


def _read(places: Iterable[Place]) -> dict[Place, Definitions]:
    return {place: read_definitions([place[0]], place[1]) for place in places}


def _write_parts(
    directory: Directory, written: WrittenChanges, places: Sequence[Place], held: HeldParts, caller: Caller
) -> None:
    for number, entry in enumerate(directory.fields):
        with _placed(f"contextFields[{number}]"):
            written.lines += write_field(entry, caller)
    for number, segment in enumerate(directory.segments):
        with _placed(f"segments[{number}]"):
            written.lines += write_segment(segment, caller, may_change=not held.shared)
    for project in directory.projects:
        environments = [environment for owner, environment in places if owner == project]
        waiting = held.in_project(project)
        parts = split_flags(directory.list_flags_of(project), environments, waiting)
        for environment, flags in parts.items():
            built = PartBuilder(project, environment, flags, parents=not held.shared)
            written.add(_import(built.part, caller))
    if directory.archive and not held.shared:
        archived = archive_flags_of_projects(directory.archive, caller=caller)
        written.lines += [make_line("archive", "flag", flag.name, flag.project_id) for flag in archived]


@contextmanager
def _placed(path: str) -> Iterator[None]:
    """Replaces the paths of problems raised inside with this path."""
    try:
        yield
    except (ValidationError, NameExists) as error:
        problems = error.details or [Problem("", error.message)]
        raise ValidationError.of(
            Problem(f"{path}.{problem.path}".rstrip("."), problem.message) for problem in problems
        ) from error


def _import(part: Part, caller: Caller) -> Plan:
    check_values(part.problems)
    try:
        return import_part(part.body, caller=caller)
    except ValidationError as error:
        raise ValidationError.of([part.translate_problem(problem) for problem in error.details]) from error


def _propose(
    directory: Directory, key: Place, places: Sequence[Place], shared: bool, caller: Caller
) -> Document | None:
    """Turns the waiting parts of the environment into a request. None if there are none."""
    before = read_definitions([key[0]], key[1])
    others = HeldParts(tuple(other for other in places if other != key), shared=not shared)

    def find_changes() -> list[ProposedChange] | None:
        _write_parts(directory, WrittenChanges(), places, others, Caller.system())
        after = read_definitions([key[0]], key[1])
        archived = Flag.objects.archived().filter(name__in=directory.archive.get(key[0], ()))
        return derive_changes(before, after, set(archived.values_list("name", flat=True)))

    changes = run_and_roll_back(find_changes)
    if changes is None:
        raise Conflict(f"What changes of {key[1]} in project {key[0]} cannot be proposed.")
    if not changes:
        return None
    request, is_new = propose_once(*key, changes, title=TITLE, caller=caller)
    return {
        "project": key[0],
        "environment": key[1],
        "id": request.pk,
        "isNew": is_new,
        "state": request.state,
        "changes": [{"flag": change.feature, "action": change.action} for change in changes],
        "impact": request.impact,
    }


def take_fingerprint(directory: Directory) -> str:
    """Hashes the wanted state and the stored state."""
    names = {
        project: {flag["name"] for _, flag in directory.list_flags_of(project)}
        for project in directory.projects
    }
    for project, archived in directory.archive.items():
        names[project].update(archived)
    state: list[Any] = [directory.flags, directory.segments, directory.fields, directory.archive]
    links = ProjectEnvironment.objects.filter(project__in=names).order_by("project", "environment")
    for link in links:
        state.append([link.project_id, link.environment_id, link.default_strategy, link.required_approvals])
        stored = read_flags(names[link.project_id], project=link.project_id, environment=link.environment_id)
        state.append([[name, flag.project, flag.document] for name, flag in sorted(stored.items())])
    segments = Segment.objects.filter(name__in=[entry["name"] for entry in directory.segments])
    fields = ContextField.objects.filter(name__in=[entry["name"] for entry in directory.fields])
    state += [make_segment_entry(row) for row in segments.order_by("name")]
    state += [make_field_entry(row) for row in fields.order_by("name")]
    return hashlib.sha256(orjson.dumps(state, option=orjson.OPT_SORT_KEYS)).hexdigest()
