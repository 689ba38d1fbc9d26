"""Grants, replaces and revokes the roles of users and groups in a project.

A caller cannot give a role with a permission that they lack in the project. Removing a role needs only write
access; even the last Owner can be removed, because administrators keep access.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record_all
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import NoAccess, NotFound, Problem, check_problems
from flagadmin.core.wording import choices
from groups.access import Caller
from groups.models import Grant, Group, Role, RolePermission, User
from groups.permissions import Permission, Scope
from groups.roles.subjects import name_permission
from projects.access import access_project, access_project_for_update
from projects.models import Project
from projects.project_scope import find_first_permission

WRITE_PERMISSIONS = (Permission.PROJECT_USER_ACCESS_WRITE, Permission.UPDATE_PROJECT)
RoleIds = frozenset[int]
Key = tuple[str, int]
"""The kind of a holder ("user" or "group") and its id."""


@dataclass(frozen=True, slots=True)
class Holders:
    """Users or groups by id.

    ``path`` is where the request body names them; None if the URL names them.
    """

    kind: str  # "user" or "group"
    ids: tuple[int, ...]
    path: str | None = None


@transactional
def add_roles(project_id: str, holders: Sequence[Holders], roles: Iterable[int], *, caller: Caller) -> None:
    """Adds these roles to those already current. Raises NotFound, NoAccess, ValidationError."""
    new_roles = frozenset(roles)
    _change(project_id, holders, new_roles, lambda _, current: current | new_roles, caller)


@transactional
def set_roles(project_id: str, holder: Holders, roles: Iterable[int], *, caller: Caller) -> None:
    """Replaces the roles current with these; an empty list removes all access.

    Raises NotFound, NoAccess, ValidationError.
    """
    new_roles = frozenset(roles)
    _change(project_id, [holder], new_roles, lambda _, current: new_roles, caller)


@transactional
def replace_access(
    project_id: str, holders_by_role: Sequence[tuple[int, Sequence[Holders]]], *, caller: Caller
) -> None:
    """Replaces all access to the project. Users and groups that are not named lose their roles.

    Raises NotFound, NoAccess, ValidationError.
    """
    lock_project(project_id, caller)
    new_roles: dict[Key, set[int]] = {}
    for role, holders in holders_by_role:
        for role_holders in holders:
            for pk in role_holders.ids:
                new_roles.setdefault((role_holders.kind, pk), set()).add(role)
    former_holders = [Holders(kind, (pk,)) for kind, pk in _read_holders(project_id) - new_roles.keys()]
    everyone = [
        *(role_holders for _, holders in holders_by_role for role_holders in holders),
        *former_holders,
    ]
    roles = frozenset(role for role, _ in holders_by_role)
    _change(project_id, everyone, roles, lambda key, current: frozenset(new_roles.get(key, ())), caller)


@transactional
def remove_role(project_id: str, holder: Holders, role: int, *, caller: Caller) -> None:
    """Removes one role. Removing a role that is not current is not an error. Raises NotFound, NoAccess."""
    _change(project_id, [holder], frozenset(), lambda _, current: current - {role}, caller)


def check_may_write(caller: Caller, project_id: str) -> None:
    """Checks that the caller may change who has access to the project. Raises NotFound, NoAccess."""
    access_project(caller, project_id)
    caller.check_any(WRITE_PERMISSIONS, project=project_id)


def lock_project(project_id: str, caller: Caller) -> Project:
    """The project, locked for a change of who has access. Raises NotFound, NoAccess."""
    permission = find_first_permission(caller, project_id, *WRITE_PERMISSIONS)
    return access_project_for_update(caller, project_id, permission)


def _change(
    project_id: str,
    holders: Sequence[Holders],
    role_ids: RoleIds,
    new: Callable[[Key, RoleIds], RoleIds],
    caller: Caller,
) -> None:
    project = lock_project(project_id, caller)
    problems: list[Problem] = []
    roles = _lock_project_roles(role_ids, problems)
    holder_rows = [(kind, row) for holder in holders for kind, row in _lock_rows(holder, problems)]
    check_problems(problems)
    current = _read_roles(project, holder_rows)
    new_roles = {key: new(key, roles_held) for key, roles_held in current.items()}
    _check_holds(caller, project, {role for key in current for role in new_roles[key] - current[key]})
    _write(project, current, new_roles)
    names = {(kind, row.pk): str(row) for kind, row in holder_rows}
    record_all(_make_events(project, names, current, new_roles, roles), actor=caller)


def _lock_project_roles(ids: RoleIds, problems: list[Problem]) -> dict[int, str]:
    known = dict(Role.objects.for_projects().values_list("id", "name"))
    problems += [
        Problem("roles", f"project role {role} not found. Available: {choices(known.values())}")
        for role in sorted(ids - known.keys())
    ]
    return known


def _lock_rows(holders: Holders, problems: list[Problem]) -> list[tuple[str, Any]]:
    """The named users or groups, locked in id order so that they cannot be deleted before commit.

    Raises NotFound for an unknown id in the URL; unknown ids in the body are added to ``problems``.
    """
    model: Any = User if holders.kind == "user" else Group
    rows = {
        row.pk: row
        for row in model.objects.select_for_update(no_key=True).filter(pk__in=holders.ids).order_by("id")
    }
    for missing in sorted(set(holders.ids) - rows.keys()):
        message = f"{holders.kind.capitalize()} with id {missing} not found."
        if holders.path is None:
            raise NotFound(message)
        problems.append(Problem(holders.path, message))
    return [(holders.kind, row) for row in rows.values()]


def _read_holders(project_id: str) -> set[Key]:
    rows = Grant.objects.filter(project_id=project_id).values_list("user_id", "group_id")
    return {("group", group) if user is None else ("user", user) for user, group in rows}


def _read_roles(project: Project, holders: Sequence[tuple[str, Any]]) -> dict[Key, RoleIds]:
    current: dict[Key, set[int]] = {(kind, row.pk): set() for kind, row in holders}
    for role, user, group in Grant.objects.filter(project=project).values_list(
        "role_id", "user_id", "group_id"
    ):
        key = ("user", user) if user is not None else ("group", group)
        if key in current:
            current[key].add(role)
    return {key: frozenset(roles) for key, roles in current.items()}


def list_grantable_roles(caller: Caller, project_id: str) -> list[Role]:
    """The project roles that the caller may give: those without a permission that the caller lacks."""
    roles = Role.objects.for_projects().order_by("id")
    missing_by_role = _find_missing_permissions(caller, project_id, {role.pk for role in roles})
    return [role for role in roles if role.name not in missing_by_role.values()]


def _find_missing_permissions(caller: Caller, project_id: str, roles: set[int]) -> dict[tuple[str, str], str]:
    """Permissions in these roles that the caller lacks, as {(permission, role name): role name}."""
    missing_by_role: dict[tuple[str, str], str] = {}
    rows = RolePermission.objects.filter(role_id__in=roles).order_by("role_id", "permission")
    for role, name, environment in rows.values_list("role__name", "permission", "environment_id"):
        permission = Permission.__members__.get(name)
        if permission is None or permission.scope is Scope.ROOT:  # grants nothing in a project
            continue
        if not caller.can(permission, project=project_id, environment=environment):
            missing_by_role[name, role] = role
    return missing_by_role


def _check_holds(caller: Caller, project: Project, roles: set[int]) -> None:
    """Raises NoAccess naming the permissions of the roles that the caller lacks."""
    if missing_by_role := _find_missing_permissions(caller, project.pk, roles):
        permissions = {permission for permission, _ in missing_by_role}
        raise NoAccess.missing(
            sorted(permissions),
            f"You cannot grant {choices(set(missing_by_role.values()))} in {project.pk}: it has permissions that you "
            f"do not have there ({choices(name_permission(Permission[name]) for name in permissions)}).",
        )


def _write(project: Project, current: dict[Key, RoleIds], new_roles: dict[Key, RoleIds]) -> None:
    Grant.objects.bulk_create(
        Grant(project=project, role_id=role, **{f"{kind}_id": pk})
        for kind, pk in current
        for role in sorted(new_roles[kind, pk] - current[kind, pk])
    )
    for (kind, pk), roles in current.items():
        if removed := roles - new_roles[kind, pk]:
            Grant.objects.filter(project=project, role_id__in=removed, **{f"{kind}_id": pk}).delete()


def _make_events(
    project: Project,
    names: dict[Key, str],
    current: dict[Key, RoleIds],
    new_roles: dict[Key, RoleIds],
    roles: dict[int, str],
) -> Iterable[Event]:
    for key, name in names.items():
        before, after = current[key], new_roles[key]
        if before == after:
            continue
        if before and after:
            kind = EventType.PROJECT_ACCESS_UPDATED
        else:
            kind = EventType.PROJECT_ACCESS_ADDED if after else EventType.PROJECT_ACCESS_REMOVED
        yield Event(
            type=kind,
            project=project.pk,
            subject=name,
            before=_make_audit_data(key, name, before, roles) if before else None,
            after=_make_audit_data(key, name, after, roles) if after else None,
        )


def _make_audit_data(key: Key, name: str, current: RoleIds, roles: dict[int, str]) -> dict[str, Any]:
    kind, pk = key
    return {
        kind: {"id": pk, "name": name},
        "roles": [{"id": r, "name": roles.get(r)} for r in sorted(current)],
    }
