"""Actions on roles: admins create, update and delete custom roles. Built-in roles cannot be changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.apps import apps

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import (
    AppError,
    InvalidOperation,
    NameExists,
    NotFound,
    Problem,
    RoleInUse,
    ValidationError,
    choices,
    counted,
    raised_by,
)
from groups.access import Caller
from groups.models import Role, RolePermission
from groups.permissions import Permission, Scope

READERS = (Permission.ADMIN, Permission.READ_ROLE)
CUSTOM_TYPES = (Role.Type.CUSTOM.value, Role.Type.ROOT_CUSTOM.value)


@dataclass(frozen=True, slots=True)
class Held:
    """A permission of a role. ``environment`` limits it to one environment; None means all."""

    permission: str
    environment: str | None = None


@dataclass(frozen=True, slots=True)
class RoleUse:
    """The number of direct holders of a role. A group counts as one holder; its members are not counted."""

    users: int
    service_accounts: int
    groups: int
    projects: int

    def __bool__(self) -> bool:
        return bool(self.users or self.service_accounts or self.groups)


def access_role(caller: Caller, role_id: int) -> Role:
    """Returns the role. Raises NoAccess, NotFound."""
    caller.check_any(READERS)
    return _found(Role.objects.filter(pk=role_id).first(), role_id)


@transactional
def create_role(
    name: str,
    *,
    description: str,
    type: str,  # noqa: A002 - the name of the model field
    permissions: Sequence[Held],
    caller: Caller,
) -> Role:
    """Creates a role. ``type``: custom (for projects) or root-custom.

    Raises NoAccess, ValidationError, NameExists.
    """
    caller.check(Permission.ADMIN)
    role = Role(name=name.strip(), description=description, type=type)
    _check(role, permissions)
    role.save()
    _replace_permissions(role, permissions)
    record(Event(type=EventType.ROLE_CREATED, subject=role.name, after=document(role)), actor=caller)
    return role


@transactional
def update_role(role_id: int, changes: dict[str, Any], *, expected: Expected = None, caller: Caller) -> Role:
    """Updates a role. ``changes``: some of ``name, description, permissions``. The type cannot be changed.

    Raises NoAccess, NotFound, InvalidOperation (built in), EditConflict, ValidationError, NameExists.
    """
    role = access_role_for_update(caller, role_id)
    before = document(role)
    check_expected(expected, before)
    role.name = changes.get("name", role.name).strip()
    role.description = changes.get("description", role.description)
    permissions = changes.get("permissions")
    _check(role, permissions if permissions is not None else ())
    role.save()
    if permissions is not None:
        _replace_permissions(role, permissions)
    after = document(role)
    if after != before:
        record(
            Event(type=EventType.ROLE_UPDATED, subject=role.name, before=before, after=after), actor=caller
        )
    return role


@transactional
def delete_role(role_id: int, *, expected: Expected = None, caller: Caller) -> None:
    """Deletes a role. Raises NoAccess, NotFound, InvalidOperation (built in), EditConflict, RoleInUse."""
    role = access_role_for_update(caller, role_id)
    before = document(role)
    check_expected(expected, before)
    check_role_is_unused(role)
    role.delete()
    record(Event(type=EventType.ROLE_DELETED, subject=before["name"], before=before), actor=caller)


def access_role_for_update(caller: Caller, role_id: int) -> Role:
    """Returns the role, locked so that it cannot be assigned until the transaction ends.

    Raises NoAccess, NotFound, InvalidOperation (built in).
    """
    caller.check(Permission.ADMIN)
    role = _found(Role.objects.select_for_update().filter(pk=role_id).first(), role_id)
    check_not_built_in(role, "changed")
    return role


def check_not_built_in(role: Role, what: str) -> None:
    """Raises InvalidOperation if the role is built in. ``what`` completes "cannot be …"."""
    if role.is_built_in:
        raise InvalidOperation(f"{role.name} is a built-in role and cannot be {what}.")


def check_role_is_unused(role: Role) -> None:
    """Raises RoleInUse if the role has holders."""
    use = role_use(role)
    if not use:
        return
    counts = (
        (use.users, "person", "people"),
        (use.service_accounts, "service account", "service accounts"),
        (use.groups, "group", "groups"),
    )
    held = ", ".join(counted(n, one, many) for n, one, many in counts if n)
    raise RoleInUse(
        f"{role.name} is granted to {held}. Revoke it from them first.",
        extra={"users": use.users, "serviceAccounts": use.service_accounts, "groups": use.groups},
    )


def role_blockers(role: Role) -> list[AppError]:
    """The reasons why the role cannot be deleted. Does not write."""
    return raised_by(partial(check_not_built_in, role, "deleted"), partial(check_role_is_unused, role))


def role_use(role: Role) -> RoleUse:
    """Counts the holders of the role globally and in projects. A holder in several places counts once."""
    groups = set(role.groups.values_list("id", flat=True))
    people: set[int | None] = set()
    services: set[int | None] = set()
    for user_id, is_service in role.users.values_list("id", "is_service"):
        (services if is_service else people).add(user_id)
    projects = set()
    grants = role.grants.values_list("project_id", "user_id", "user__is_service", "group_id")
    for project_id, user_id, is_service, group_id in grants:
        projects.add(project_id)
        if group_id is not None:
            groups.add(group_id)
        else:
            (services if is_service else people).add(user_id)
    return RoleUse(len(people), len(services), len(groups), len(projects))


def permissions_of(role: Role) -> list[Held]:
    rows = role.permissions.order_by("permission", "environment_id")
    return [
        Held(permission, environment)
        for permission, environment in rows.values_list("permission", "environment_id")
    ]


def document(role: Role) -> dict[str, Any]:
    """The role as a JSON document for audit events and edit conflicts."""
    return {
        "id": role.pk,
        "name": role.name,
        "description": role.description,
        "type": role.type,
        "permissions": [
            {"name": held.permission} | ({"environment": held.environment} if held.environment else {})
            for held in permissions_of(role)
        ],
    }


def environment_names() -> list[str]:
    model = apps.get_model("projects", "Environment")  # by name, because groups must not import projects
    return list(model.objects.order_by("sort_order", "name").values_list("name", flat=True))


def check_role_name(name: str, *, but: Role | None = None) -> None:
    """Raises NameExists if another role has this name."""
    if Role.objects.filter(name=name).exclude(pk=but.pk if but and but.pk else 0).exists():
        raise NameExists(f"A role named {name} already exists.")


def _found(role: Role | None, role_id: int) -> Role:
    if role is None:
        raise NotFound(f"Role with id {role_id} not found.")
    return role


def _check(role: Role, permissions: Sequence[Held]) -> None:
    """Raises ValidationError, NameExists."""
    problems = list(_problems(role, permissions))
    if problems:
        raise ValidationError.of(problems)
    check_role_name(role.name, but=role)


def _problems(role: Role, permissions: Sequence[Held]) -> Iterator[Problem]:
    if not role.name:
        yield Problem("name", "A role needs a name.")
    if role.type not in CUSTOM_TYPES:
        yield Problem("type", f"{role.type} is not a role type. Available: {choices(CUSTOM_TYPES)}.")
        return
    environments = environment_names()
    for index, held in enumerate(permissions):
        for message in _faults(role, held, environments):
            yield Problem(f"permissions[{index}]", message)


def _faults(role: Role, held: Held, environments: list[str]) -> Iterator[str]:
    if held.permission not in Permission.__members__:
        yield f"{held.permission} is not a permission. GET /api/admin/permissions lists them."
        return
    permission = Permission[held.permission]
    if permission is Permission.ADMIN:
        yield "Only the built-in role Admin can have ADMIN."
    elif (permission.scope is Scope.ROOT) != role.is_root:
        role_type = "root-custom" if permission.scope is Scope.ROOT else "custom"
        yield f"{held.permission} belongs in a role of type {role_type}."
    if held.environment is None:
        return
    if permission.scope is not Scope.ENVIRONMENT:
        yield f"{held.permission} cannot be limited to one environment."
    elif held.environment not in environments:
        yield f"Environment {held.environment} not found. Available: {choices(environments)}."


def _replace_permissions(role: Role, permissions: Sequence[Held]) -> None:
    role.permissions.all().delete()
    RolePermission.objects.bulk_create(
        RolePermission(role=role, permission=held.permission, environment_id=held.environment)
        for held in dict.fromkeys(permissions)
    )


def why_not_deleted(role: Role) -> str:
    """The reasons why the role cannot be deleted, as one string; "" if there are none."""
    return " ".join(error.message for error in role_blockers(role))
