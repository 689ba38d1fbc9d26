"""Creates flags and changes their metadata (type, description, stale, impression data)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction

from flagadmin.core.audit.record import Event, EventType, read_transaction_time, record, record_all
from flagadmin.core.change_checks import KnownChange
from flagadmin.core.change_checks.comments import foresee
from flagadmin.core.db.transactions import UNIQUE_VIOLATION, get_sqlstate, transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import NameExists, Problem, check_problems
from flagadmin.core.wording import choices
from groups.access import Caller, Permission
from projects.access import access_flag_for_update, access_flags_for_update, access_project_for_update
from projects.flags.arrivals import check_arrivals
from projects.flags.limits import check_room
from projects.flags.links.actions import add_first_links
from projects.flags.name_rules import find_name_problem, find_pattern_problem
from projects.flags.owner_rules import owner_problems
from projects.flags.queries import make_metadata_document
from projects.models import (
    Flag,
    FlagEnvironment,
    FlagTag,
    FlagType,
    LifecycleStage,
    Project,
    ProjectEnvironment,
    TagType,
)
from projects.strategies.known_names import KnownNames
from projects.tag_types.rules import tag_problems

CHANGEABLE = frozenset({"type", "description", "stale", "impression_data", "owner_user_id", "owner_group_id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFlag:
    """The values of a flag to be created. ``tags`` are (type, value) pairs."""

    name: str
    type: str = "release"
    description: str | None = None
    impression_data: bool = False
    stale: bool = False
    owner_user_id: int | None = None
    owner_group_id: int | None = None
    tags: Sequence[tuple[str, str]] = field(default_factory=tuple)


@transactional
def create_flag(project_id: str, new: NewFlag, *, caller: Caller) -> Flag:
    """Creates a flag that is off in every environment of the project.

    Raises NotFound, NoAccess, ValidationError, NameExists, and InvalidOperation if the project is full.
    """
    project = access_project_for_update(caller, project_id, Permission.CREATE_FEATURE, flags=[new.name])
    check_problems(
        [
            *new_name_problems(new.name, project),
            *type_problems(new.type),
            *_tags_problems(new.tags),
            *owner_problems({"owner_user_id": new.owner_user_id, "owner_group_id": new.owner_group_id}),
        ]
    )
    check_room(project, 1)
    flag = insert_flag(project, new, caller=caller)
    record(Event.of_flag(EventType.FEATURE_CREATED, flag, after=make_metadata_document(flag)), actor=caller)
    add_first_links(flag, caller=caller)
    return flag


def insert_flag(project: Project, new: NewFlag, *, caller: Caller) -> Flag:
    """Inserts the rows of a new flag. The caller has validated everything except whether the name is free.

    Raises NameExists.
    """
    check_arrivals([new.name], project.pk, None)
    now = read_transaction_time()
    flag = Flag(
        name=new.name,
        project=project,
        type=new.type or "release",
        description=new.description or None,
        impression_data=new.impression_data,
        stale=new.stale,
        owner_user_id=new.owner_user_id,
        owner_group_id=new.owner_group_id,
        created_at=now,
        created_by=caller.user,
    )
    try:
        with transaction.atomic():
            flag.save(force_insert=True)
    except IntegrityError as exc:
        if get_sqlstate(exc) != UNIQUE_VIOLATION:
            raise
        raise name_taken(new.name, caller) from exc
    places = ProjectEnvironment.objects.filter(project=project).values_list("environment_id", flat=True)
    FlagEnvironment.objects.bulk_create(FlagEnvironment(flag=flag, environment_id=place) for place in places)
    LifecycleStage.objects.create(flag=flag, stage=LifecycleStage.Stage.INITIAL, entered_at=now)
    FlagTag.objects.bulk_create(
        FlagTag(flag=flag, tag_type_id=kind, value=value) for kind, value in dict.fromkeys(new.tags)
    )
    return flag


def check_new_name(project: Project, name: str, *, caller: Caller) -> None:
    """Checks that a flag with this name could be created. Raises ValidationError, NameExists."""
    check_problems(new_name_problems(name, project))
    if Flag.objects.filter(name=name).exists():
        raise name_taken(name, caller)


def new_name_problems(name: str, project: Project) -> Iterable[Problem]:
    message = find_name_problem(name) or find_pattern_problem(name, project)
    return [Problem("name", message)] if message else []


def name_taken(name: str, caller: Caller) -> NameExists:
    """The error for a taken name. It names the flag's project only if the caller may see it."""
    flag = Flag.objects.filter(name=name).only("project_id", "archived_at").first()
    if flag is None or not caller.can_read(flag.project_id):
        return NameExists(f"A flag named {name} already exists. Names are unique across all projects.")
    state = ", archived" if flag.is_archived else ""
    return NameExists(f"A flag named {name} already exists (in project {flag.project_id}{state}).")


def type_problems(kind: str) -> Iterable[Problem]:
    types = FlagType.objects.values_list("id", flat=True)
    if kind and kind not in types:
        yield Problem("type", f"flag type {kind} not found. Available: {choices(types)}")


def _tags_problems(tags: Sequence[tuple[str, str]]) -> Iterable[Problem]:
    if not tags:
        return
    known_names = KnownNames(tag_types=frozenset(TagType.objects.values_list("name", flat=True)))
    for index, (kind, value) in enumerate(tags):
        yield from tag_problems(kind, value, f"tags[{index}]", known_names=known_names)


def update_flag(
    project_id: str, name: str, changes: Mapping[str, Any], *, expected: Expected = None, caller: Caller
) -> Flag:
    """Updates the given fields out of ``CHANGEABLE``.

    An imported flag may keep an unknown type until the type is changed. Raises NotFound, NoAccess,
    EditConflict, ValidationError.
    """
    return edit_flag(project_id, name, lambda before: changes, expected=expected, caller=caller)


@transactional
def edit_flag(
    project_id: str,
    name: str,
    edit: Callable[[dict[str, Any]], Mapping[str, Any]],
    *,
    expected: Expected = None,
    caller: Caller,
) -> Flag:
    """Like ``update_flag``, but ``edit`` computes the changes from the metadata of the locked flag."""
    flag = access_flag_for_update(caller, project_id, name, Permission.UPDATE_FEATURE)
    before = make_metadata_document(flag)
    check_expected(expected, before)
    changes = edit(before)
    changed = {key: value for key, value in changes.items() if getattr(flag, key) != value}
    if not changed:
        return flag
    if unknown := changed.keys() - CHANGEABLE:
        raise TypeError(f"these cannot be changed: {sorted(unknown)}")
    check_problems([*type_problems(changed.get("type", "")), *owner_problems(changed)])
    for key, value in changed.items():
        setattr(flag, key, value)
    after = make_metadata_document(flag)
    events = [Event.of_flag(kind, flag, before=before, after=after) for kind in _list_event_types(changed)]
    foresee(events, KnownChange({name: {"impression_data": flag.impression_data}}))
    flag.save(update_fields=list(changed))
    record_all(events, actor=caller)
    return flag


def _list_event_types(changed: Mapping[str, Any]) -> Iterable[EventType]:
    if changed.keys() - {"stale"}:
        yield EventType.FEATURE_METADATA_UPDATED
    if "stale" in changed:
        yield _choose_stale_event(changed["stale"])


def _choose_stale_event(stale: bool) -> EventType:
    return EventType.FEATURE_STALE_ON if stale else EventType.FEATURE_STALE_OFF


@transactional
def set_stale(project_id: str, names: Iterable[str], stale: bool, *, caller: Caller) -> list[Flag]:
    """Marks flags as stale or not stale. Raises NotFound, NoAccess, and InvalidOperation unless all are active."""
    flags = access_flags_for_update(caller, project_id, names, Permission.UPDATE_FEATURE, archived=False)
    changed = [flag for flag in flags if flag.stale != stale]
    Flag.objects.filter(pk__in=[flag.pk for flag in changed]).update(stale=stale)
    kind = _choose_stale_event(stale)
    record_all([Event.of_flag(kind, flag) for flag in changed], actor=caller)
    return changed
