"""Finds, locks and authorizes projects and flags. Every action gets the rows that it changes from here.

A row that the caller may not read raises NotFound; a readable row that the caller may not change raises NoAccess. Locks
are always taken in the same order, which prevents deadlocks: projects by id, then flags by name.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from flagadmin.core import change_checks
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.statements import Compiled
from flagadmin.core.errors import InvalidOperation, NotFound, Problem, ValidationError, choices
from groups.access import Caller, Permission
from projects.flags.payloads.stored import check_at_end
from projects.models import Environment, Flag, Project, ProjectEnvironment, Strategy
from projects.models.projects import ProjectQuerySet

REFUSES = Q(refuse_broken_expectations=True) | Q(needs_requests=True)
"""For `with_checks`: projects whose checks can refuse a change."""


_PROJECT = Compiled(lambda id: Project.objects.filter(id=id))  # noqa: A006
_FLAG = Compiled(lambda project, name: Flag.objects.filter(project_id=project, name=name))


def list_projects_with(caller: Caller, permission: Permission) -> list[str]:
    """The projects where the caller has the permission by a role there; root roles count in the default project."""
    return sorted(
        {project for granted, project, _ in caller.rights.held if granted == permission and project}
    )


def access_project(caller: Caller, project_id: str, permission: Permission | None = None) -> Project:
    """A project that the caller may read and, with ``permission``, may change. Raises NotFound, NoAccess."""
    project = _PROJECT.read_first(id=project_id) if caller.can_read(project_id) else None
    if project is None:
        raise project_not_found(project_id)
    if permission is not None:
        caller.check(permission, project=project_id)
    return project


def access_project_for_update(
    caller: Caller,
    project_id: str,
    permission: Permission | None,
    *,
    environment: str | None = None,
    for_deletion: bool = False,
    archived: bool = False,
    flags: Collection[str] | None = None,
) -> Project:
    """The project, locked until the end of the transaction. Raises NotFound, NoAccess.

    Every change in a project takes this lock, so changes to one project happen one after the other. Deletion takes a
    stronger lock, which also waits for transactions that insert rows referring to the project. An archived project
    raises NotFound unless ``archived`` is true. With ``permission`` None, the action checks permissions once it knows
    its changes. ``flags`` are the changed flags, if only flags change.
    """
    if not caller.can_read(project_id):
        raise project_not_found(project_id)
    project = (
        Project.objects.with_checks()
        .select_for_update(no_key=not for_deletion)
        .filter(id=project_id)
        .order_by("id")
        .first()
    )
    if project is None:
        raise project_not_found(project_id)
    if permission is not None:
        caller.check(permission, project=project_id, environment=environment)
    if not archived:
        check_not_archived(project)
    _begin(project, flags, caller)
    return project


def begin_checks(
    projects: ProjectQuerySet, flags: Mapping[str, Collection[str]] | None = None, *, caller: Caller
) -> list[Project]:
    """Locks the projects in the order of their ids, and begins the checks of those that refuse changes.

    ``flags`` are the changed flags of each project, if only flags change.
    """
    locked = list(projects.with_checks().select_for_update(no_key=True).order_by("id"))
    for project in locked:
        _begin(project, flags[project.pk] if flags is not None else None, caller)
    return locked


def _begin(project: Any, flags: Collection[str] | None, caller: Caller) -> None:
    if project.has_schemas:  # first: an invalid payload is never proposed to reviewers
        check_at_end(project.pk, flags)
    if project.refuse_broken_expectations or project.needs_requests or caller.person.postpones:
        change_checks.begin(project.pk, flags, caller=caller.person)


def may_refuse_changes(project_id: str) -> bool:
    """Whether the project may refuse a change because of its effect on the whole project."""
    return Project.objects.with_checks().filter(REFUSES, pk=project_id).exists()


def lock_refusing_projects(flags: QuerySet[Flag], *, caller: Caller) -> None:
    """Locks the projects that refuse changes, for a change that may affect flags of any project.

    For a postponed change, locks the projects of the affected ``flags``. Raises ValidationError if there are none.
    """
    projects = Project.objects.with_checks()
    if not caller.person.postpones:
        begin_checks(projects.filter(REFUSES), caller=caller)
    elif not begin_checks(projects.filter(pk__in=flags.values("project")), caller=caller):
        raise ValidationError("Only what flags use can be changed later. Nothing was saved.")


def check_not_archived(project: Project) -> None:
    """Raises NotFound if the project is archived."""
    if project.archived_at is not None:
        raise NotFound(f"Project {project.pk} is archived. Revive it first.")


def lock_projects(
    caller: Caller, project_ids: Iterable[str], *, flags: Mapping[str, Collection[str]] | None = None
) -> dict[str, Project]:
    """Projects by id, locked in id order, without those that the caller cannot read. Checks no permission.

    `flags`: see `begin_checks`.
    """
    ids = {project_id for project_id in project_ids if caller.can_read(project_id)}
    locked = begin_checks(Project.objects.filter(id__in=ids), flags, caller=caller)
    return {project.id: project for project in locked}


def group_by_project(flags: Iterable[Flag]) -> dict[str, list[str]]:
    """The names of the flags by project, in the order in which projects are locked."""
    names: dict[str, list[str]] = {}
    for flag in sorted(flags, key=attrgetter("project_id", "name")):
        names.setdefault(flag.project_id, []).append(flag.name)
    return names


def access_flag(
    caller: Caller,
    project_id: str,
    name: str,
    *,
    archived: bool | None = None,
    permission: Permission | None = None,
    environment: str | None = None,
) -> Flag:
    """A flag of the project. ``archived`` restricts to archived (True) or active (False) flags.

    Views call this with ``permission`` (and ``environment``) before they read the body, so that permission
    errors come first. Raises NotFound, NoAccess.
    """
    flag = _FLAG.read_first(project=project_id, name=name) if caller.can_read(project_id) else None
    if flag is None:
        access_project(caller, project_id)
    flag = _check_state(flag, project_id, name, archived)
    if permission is not None:
        caller.check(permission, project=project_id, environment=environment)
    return flag


def access_flag_for_update(
    caller: Caller,
    project_id: str,
    name: str,
    permission: Permission | None,
    *,
    environment: str | None = None,
) -> Flag:
    """The active flag, locked with its project. Raises NotFound, NoAccess. ``permission``: see above."""
    access_project_for_update(caller, project_id, permission, environment=environment, flags=[name])
    flags = Flag.objects.select_for_update(no_key=True).filter(project_id=project_id, name=name)
    return _check_state(flags.first(), project_id, name, archived=False)


def access_flags_for_update(
    caller: Caller,
    project_id: str,
    names: Iterable[str],
    permission: Permission,
    *,
    environment: str | None = None,
    archived: bool | None = None,
) -> list[Flag]:
    """The project's flags with these names, locked and sorted by name. For changes of several flags.

    Raises NotFound, NoAccess for the project, and InvalidOperation with every flag that is not in the project, or not
    in the ``archived`` state.
    """
    listed = list(dict.fromkeys(names))
    flags = _lock_flags(caller, project_id, listed, permission, environment=environment)
    missing = sorted(set(listed) - {flag.name for flag in flags})
    wrong = [flag for flag in flags if archived is not None and flag.is_archived != archived]
    if missing or wrong:
        raise _make_selection_error(caller, project_id, missing, wrong)
    return flags


def access_flags_of_projects(
    caller: Caller,
    names: Mapping[str, Iterable[str]],
    permission: Permission,
    *,
    archived: bool | None = None,
) -> list[Flag]:
    """Like `access_flags_for_update`, for flags of several projects: ``names`` by project."""
    listed = {project_id: list(names[project_id]) for project_id in sorted(names)}
    if len(listed) > 1:
        lock_projects(caller, listed, flags=listed)
    return [
        flag
        for project_id in listed
        for flag in access_flags_for_update(
            caller, project_id, listed[project_id], permission, archived=archived
        )
    ]


def _make_selection_error(
    caller: Caller, project_id: str, missing: list[str], wrong: Sequence[Flag]
) -> InvalidOperation:
    sentences = [f"{choices(missing)} {_be(missing)} not in project {project_id}."] if missing else []
    elsewhere = dict(
        Flag.objects.readable_by(caller).filter(name__in=missing).values_list("name", "project_id")
    )
    details = [
        Problem(name, f"it is in project {elsewhere[name]}" if name in elsewhere else "there is no such flag")
        for name in missing
    ]
    if wrong:
        names = [flag.name for flag in wrong]
        state, remedy = ("archived", "Revive") if wrong[0].is_archived else ("still active", "Archive")
        sentences.append(
            f"{choices(names)} {_be(names)} {state}. {remedy} {'it' if len(names) == 1 else 'them'} first."
        )
        details += [Problem(name, f"it is {state}") for name in names]
    return InvalidOperation(" ".join(sentences), details=details)


def _be(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def access_active_flags_for_update(
    caller: Caller,
    project_id: str,
    names: Iterable[str],
    permission: Permission,
    *,
    environment: str | None = None,
) -> list[Flag]:
    """The flag for each of the names, locked. Raises NotFound, also for the first archived one, and NoAccess."""
    listed = list(names)
    locked = _lock_flags(caller, project_id, listed, permission, environment=environment)
    by_name = {flag.name: flag for flag in locked}
    return [_check_state(by_name.get(name), project_id, name, False) for name in listed]


def _lock_flags(
    caller: Caller, project_id: str, names: list[str], permission: Permission, *, environment: str | None
) -> list[Flag]:
    access_project_for_update(caller, project_id, permission, environment=environment, flags=names)
    flags = Flag.objects.select_for_update(no_key=True).filter(project_id=project_id, name__in=names)
    return list(flags.order_by("name"))


def _check_state(flag: Flag | None, project_id: str, name: str, archived: bool | None) -> Flag:
    if flag is None:
        raise NotFound(f"Flag {name} not found in project {project_id}.")
    if archived is not None and flag.is_archived != archived:
        state = "archived; revive it first" if flag.is_archived else "not archived"
        raise NotFound(f"Flag {name} of project {project_id} is {state}.")
    return flag


def find_project_environment(project_id: str, environment: str) -> ProjectEnvironment:
    """The project's link to an environment that it uses. Raises NotFound, ValidationError without a name."""
    if not environment:
        known = ProjectEnvironment.objects.filter(project_id=project_id).order_by("environment")
        names = choices(known.values_list("environment_id", flat=True))
        raise ValidationError(f"The address does not say which environment. Available: {names}.")
    rows = ProjectEnvironment.objects.filter(project_id=project_id, environment_id=environment)
    return get_or_404(
        rows.select_related("project"), f"Project {project_id} has no environment {environment}."
    )


def access_strategy(flag: Flag, environment: str, strategy_id: str) -> Strategy:
    """A strategy of the flag in the environment. Raises NotFound."""
    rows, key = Strategy.objects.filter(flag=flag, environment_id=environment), None
    with suppress(ValueError):
        key = UUID(strategy_id)
    if key is None or (strategy := rows.filter(pk=key).first()) is None:
        raise NotFound(f"{flag.name} has no strategy {strategy_id} in {environment}.")
    strategy.flag = flag
    return strategy


def access_environment(name: str) -> Environment:
    """An environment named in a URL path. Raises NotFound."""
    environment = Environment.objects.filter(name=name).first()
    if environment is None:
        raise NotFound(describe_unknown_environment(name))
    return environment


def check_environment(name: str) -> Environment:
    """An environment named in a body or query. Raises ValidationError with the available names."""
    environment = Environment.objects.filter(name=name).first()
    if environment is None:
        raise ValidationError.at("environment", describe_unknown_environment(name))
    return environment


def environment_problems(places: Mapping[str, str], known: Collection[str]) -> Iterator[Problem]:
    """A problem for each unknown environment.

    ``places`` maps JSON paths to names; each name is reported once.
    """
    reported = set(known)
    for path, name in places.items():
        if name not in reported:
            yield Problem(path, f"Environment {name} not found. Available: {choices(known)}.")
            reported.add(name)


def check_project(caller: Caller, project_id: str, path: str = "project") -> Project:
    """A project named in a body or query. Raises ValidationError with the ids that the caller can read."""
    project = Project.objects.readable_by(caller).filter(id=project_id).first()
    if project is None:
        raise ValidationError.at(path, describe_unknown_project(caller, project_id))
    return project


def project_not_found(project_id: str) -> NotFound:
    return NotFound(f"Project {project_id} not found.")


def describe_unknown_environment(name: str) -> str:
    names = choices(Environment.objects.values_list("name", flat=True))
    return (
        f"Environment {name} not found. Available: {names}." if name else f"Choose an environment: {names}."
    )


def describe_unknown_project(caller: Caller, project_id: str) -> str:
    names = choices(Project.objects.readable_by(caller).values_list("id", flat=True))
    return f"Project {project_id} not found. " + (
        f"Available: {names}." if names else "You cannot see any project."
    )
