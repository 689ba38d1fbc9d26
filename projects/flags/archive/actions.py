"""Archives and revives flags, and deletes archived ones.

Each action handles many flags with few queries.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from flagadmin.core.audit.record import Event, EventType, read_transaction_time, record_all
from flagadmin.core.change_checks import KnownChange
from flagadmin.core.change_checks.comments import foresee
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import InvalidOperation
from groups.access import Caller, Permission
from projects.access import access_flags_for_update, access_project, lock_projects
from projects.flags.archive.delete import check_no_children, find_children_outside, remove_flags
from projects.flags.limits import check_room
from projects.flags.queries import make_metadata_document
from projects.models import Dependency, Flag, FlagEnvironment, LifecycleStage

ARCHIVED = LifecycleStage.Stage.ARCHIVED


@transactional
def archive_flags(
    project_id: str, names: Iterable[str], *, expected: Expected = None, caller: Caller
) -> list[Flag]:
    """Archives the active flags among ``names``; archived ones do not change.

    ``expected`` refers to the metadata document. Raises NotFound, NoAccess, EditConflict, and
    InvalidOperation if an active flag that is not being archived depends on one of these flags, or if one of
    them is not in the project.
    """
    flags = access_flags_for_update(caller, project_id, names, Permission.DELETE_FEATURE)
    return _archive(flags, expected=expected, caller=caller)


@transactional
def archive_flags_of_projects(names: Mapping[str, Sequence[str]], *, caller: Caller) -> list[Flag]:
    """Like ``archive_flags``, for flags of several projects, which may depend on each other.

    ``names`` are by project. All or nothing.
    """
    lock_projects(caller, names, flags=names)
    flags = [
        flag
        for project_id in sorted(names)
        for flag in access_flags_for_update(caller, project_id, names[project_id], Permission.DELETE_FEATURE)
    ]
    return _archive(flags, caller=caller)


def _archive(flags: Iterable[Flag], *, expected: Expected = None, caller: Caller) -> list[Flag]:
    active = [flag for flag in flags if not flag.is_archived]
    for flag in active:
        check_expected(expected, make_metadata_document(flag))
    check_no_children(active, "archived")
    events = _make_events(EventType.FEATURE_ARCHIVED, active)
    foresee(events, KnownChange({flag.name: None for flag in active}))
    now = read_transaction_time()
    for flag in active:
        flag.archived_at = now
    Flag.objects.filter(pk__in=[flag.pk for flag in active]).update(archived_at=now)
    LifecycleStage.objects.bulk_create(
        [LifecycleStage(flag=flag, stage=ARCHIVED, entered_at=now) for flag in active],
        update_conflicts=True,
        unique_fields=["flag", "stage"],
        update_fields=["entered_at"],
    )
    record_all(events, actor=caller)
    return active


@transactional
def revive_flags(project_id: str, names: Iterable[str], *, caller: Caller) -> list[Flag]:
    """Revives the archived flags among ``names``, off in every environment; active ones do not change.

    Raises NotFound, NoAccess, InvalidOperation if a flag is not in the project or the project is full, and
    ValidationError if the installation is.
    """
    flags = access_flags_for_update(caller, project_id, names, Permission.UPDATE_FEATURE)
    archived = [flag for flag in flags if flag.is_archived]
    check_room(access_project(caller, project_id), len(archived))
    ids = [flag.pk for flag in archived]
    for flag in archived:
        flag.archived_at = None
    on = FlagEnvironment.objects.filter(flag_id__in=ids, enabled=True)
    were_on = defaultdict(list)
    for flag_id, environment in on.order_by("environment_id").values_list("flag_id", "environment_id"):
        were_on[flag_id].append(environment)
    if were_on:
        on.update(enabled=False)
    LifecycleStage.objects.filter(flag_id__in=ids, stage=ARCHIVED).delete()
    Flag.objects.filter(pk__in=ids).update(archived_at=None)
    record_all(_make_events(EventType.FEATURE_REVIVED, archived, were_on), actor=caller)
    return archived


def check_archived(flag: Flag) -> None:
    """Raises InvalidOperation if the flag is active: only archived flags can be deleted."""
    if not flag.is_archived:
        raise InvalidOperation(f"Flag {flag.name} is still active. Archive it first.")


@transactional
def delete_flags(project_id: str, names: Iterable[str], *, caller: Caller) -> list[str]:
    """Permanently deletes archived flags, and returns their names.

    Raises NotFound, NoAccess, and InvalidOperation if one of them is active or not in the project, or if an active
    flag depends on one of them.
    """
    flags = access_flags_for_update(caller, project_id, names, Permission.DELETE_FEATURE, archived=True)
    remove_flags(flags, caller=caller)
    return [flag.name for flag in flags]


def check_archive(project_id: str, names: Iterable[str]) -> tuple[list[str], bool]:
    """The active flags among ``names`` that block archiving, and whether any of the flags has a parent.

    Read-only. The caller has checked that the project may be read.
    """
    flags = Flag.objects.active().filter(project_id=project_id, name__in=list(names))
    parents = {parent for parent, _ in find_children_outside(flags)}
    return sorted(parents), Dependency.objects.filter(flag__in=flags).exists()


def _make_events(
    kind: EventType, flags: Sequence[Flag], were_on: Mapping[int, list[str]] | None = None
) -> Iterable[Event]:
    """``were_on`` are environments in which the flags were on."""
    return [
        Event.of_flag(kind, flag, earlier={"on": were_on.get(flag.pk, [])} if were_on is not None else None)
        for flag in flags
    ]
