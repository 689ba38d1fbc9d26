"""Grants, replaces and revokes the roles of users and groups in a project.

A caller cannot grant a role with a permission that they lack in the project. Removing a role needs only write
access; even the last Owner can be removed, because administrators keep access.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from flagadmin.core.audit.record import Event, EventType, record_all
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import NoAccess, NotFound, Problem, ValidationError, check_problems, choices
from groups.access import Caller
from groups.login.links import send_invitation
from groups.login.passwords import create_first_link
from groups.models import Grant, Group, Role, RolePermission, User
from groups.people.actions import invite_person
from groups.permissions import Permission, Scope
from groups.roles.actions import limit_role
from groups.roles.subjects import name_permission
from projects.access import access_project, access_project_for_update
from projects.console import project_url
from projects.members.queries import find_holder
from projects.models import Project, ProjectEnvironment
from projects.project_scope import find_first_permission

WRITE_PERMISSIONS = (Permission.PROJECT_USER_ACCESS_WRITE, Permission.UPDATE_PROJECT)
RoleIds = frozenset[int]
Key = tuple[str, int]
"""The kind of a holder ("user" or "group") and its id."""


@dataclass(frozen=True, slots=True)
class Holders:
    """Users or groups by id.

    ``path`` is their path in the request body; None if the URL names them.
    """

    kind: str  # "user" or "group"
    ids: tuple[int, ...]
    path: str | None = None


@transactional
def add_roles(project_id: str, holders: Sequence[Holders], roles: Iterable[int], *, caller: Caller) -> None:
    """Adds these roles to the current ones. Raises NotFound, NoAccess, ValidationError."""
    new_roles = frozenset(roles)
    _change(project_id, holders, new_roles, lambda _, current: current | new_roles, caller)


@transactional
def set_roles(project_id: str, holder: Holders, roles: Iterable[int], *, caller: Caller) -> None:
    """Replaces the current roles with these; an empty list removes all access.

    Raises NotFound, NoAccess, ValidationError.
    """
    new_roles = frozenset(roles)
    _change(project_id, [holder], new_roles, lambda _, current: new_roles, caller)


@transactional
def replace_access(
    project_id: str, holders_by_role: Sequence[tuple[int, Sequence[Holders]]], *, caller: Caller
) -> None:
    """Replaces all access to the project. Users and groups that are not listed lose their roles.

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
    """Removes one role. Removing a role that is not held is not an error. Raises NotFound, NoAccess."""
    _change(project_id, [holder], frozenset(), lambda _, current: current - {role}, caller)


def check_may_write(caller: Caller, project_id: str) -> None:
    """Checks that the caller may change access to the project. Raises NotFound, NoAccess."""
    access_project(caller, project_id)
    caller.check_any(WRITE_PERMISSIONS, project=project_id)


def lock_project(project_id: str, caller: Caller) -> Project:
    """The project, locked for a change of access. Raises NotFound, NoAccess."""
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
    """The project roles that the caller may grant, because the caller has all their permissions."""
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
    """Raises NoAccess with the permissions of the roles that the caller lacks."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """``who``: user name, email address, or ``group: NAME``. ``role``: id of a project role.

    ``environments`` limit the role; empty for the whole role. ``name``: the full name of a new person.
    """

    who: str
    role: int
    environments: Sequence[str] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Invited:
    """``link``: the path of a one-time link, for a new account that has to set a password."""

    holder: User | Group
    role: Role
    is_new: bool = False
    link: str = ""

    @property
    def kind(self) -> str:
        return "group" if isinstance(self.holder, Group) else "user"


@transactional
def invite(project_id: str, invitation: Invitation, *, caller: Caller) -> Invited:
    """Grants the role. An unknown email address gets an account without a root role.

    Raises NotFound, NoAccess, ValidationError.
    """
    project = lock_project(project_id, caller)
    holder = find_holder(invitation.who, "who")
    if isinstance(holder, User) and not holder.is_active:
        raise ValidationError.at("who", f"{holder} is disabled. An admin can enable the account.")
    if holder is None and "@" not in invitation.who:
        message = (
            f"Account or group {invitation.who.strip()} not found. Invite somebody new by email address."
        )
        raise ValidationError.at("who", message)
    role = _find_role(project, invitation, caller)
    is_new = holder is None
    if holder is None:
        holder = invite_person(
            invitation.who.strip(), name=invitation.name, project=project.pk, caller=caller
        )
    invited = Invited(holder, role, is_new)
    add_roles(project.pk, [Holders(invited.kind, (holder.pk,), "who")], [role.pk], caller=caller)
    if not isinstance(holder, User) or not is_new or not settings.PASSWORD_LOGIN:
        return invited
    return Invited(holder, role, is_new, create_first_link(holder, then=project_url(project.pk)))


def mail_invitation(invited: Invited, project: Project, *, caller: Caller) -> bool:
    """Emails a new person their link, if this installation sends e-mail. Returns whether the mail server
    accepted it.
    """
    if not invited.link or not isinstance(invited.holder, User):
        return False
    return send_invitation(invited.holder, invited.link, by=caller.name, project=project.name)


def _find_role(project: Project, invitation: Invitation, caller: Caller) -> Role:
    role = Role.objects.for_projects().filter(pk=invitation.role).first()
    if role is None:
        names = Role.objects.for_projects().values_list("name", flat=True)
        raise ValidationError.at(
            "role", f"Project role {invitation.role} not found. Available: {choices(names)}."
        )
    links = ProjectEnvironment.objects.filter(project=project)
    offered = links.order_by("environment__sort_order", "environment_id").values_list(
        "environment_id", flat=True
    )
    if unknown := sorted(set(invitation.environments) - {*offered}):
        message = f"Environment {unknown[0]} not found in {project.pk}. Available: {choices(offered)}."
        raise ValidationError.at("environments", message)
    places = [name for name in offered if name in invitation.environments]
    return limit_role(role, places, project=project.pk, caller=caller) if places else role
