"""Actions on roles: admins create, update and delete custom roles. Built-in roles cannot be changed."""

from collections.abc import Sequence
from typing import TypedDict

from flagadmin.core.audit.record import Event, EventType, record, record_change
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import check_problems
from flagadmin.core.wording import choices
from groups.access import Caller, Permission
from groups.models import Role, RolePermission
from groups.models.roles import HeldPermission
from groups.roles.queries import find_equal_role, find_role
from groups.roles.rules import (
    check_not_built_in,
    check_role_is_unused,
    check_role_name,
    limit_permissions,
    name_limited_role,
    problems_of_role,
)


class RoleChanges(TypedDict, total=False):
    """New values of a role."""

    name: str
    description: str
    permissions: Sequence[HeldPermission]


@transactional
def create_role(
    name: str,
    *,
    description: str,
    type: str,  # noqa: A002 - the name of the model field
    permissions: Sequence[HeldPermission],
    caller: Caller,
) -> Role:
    """Creates a role. ``type``: custom (for projects) or root-custom.

    Raises NoAccess, ValidationError, NameExists.
    """
    caller.check(Permission.ADMIN)
    role = Role(name=name.strip(), description=description, type=type)
    _check_role(role, permissions)
    role.save()
    _replace_permissions(role, permissions)
    record(Event(type=EventType.ROLE_CREATED, subject=role.name, after=role.document()), actor=caller)
    return role


@transactional
def limit_role(role: Role, environments: Sequence[str], *, project: str, caller: Caller) -> Role:
    """The project role limited to these environments: an existing one with equal permissions, or a new one.

    Checks no permission: callers who grant the result must have every permission in it. ``project`` is the place of the
    grant, for the activity log.
    """
    # Transactions that need the same role at once run one after the other.
    Role.objects.select_for_update(no_key=True).get(pk=role.pk)
    permissions = limit_permissions(role.held_permissions(), environments)
    if (equal := find_equal_role(permissions)) is not None:
        return equal
    limited = Role.objects.create(
        name=name_limited_role(role, environments),
        description=f"{role.name}, limited to {choices(environments)}.",
        type=Role.Type.CUSTOM,
    )
    _replace_permissions(limited, permissions)
    event = Event(
        type=EventType.ROLE_CREATED, project=project, subject=limited.name, after=limited.document()
    )
    record(event, actor=caller)
    return limited


@transactional
def update_role(role_id: int, changes: RoleChanges, *, expected: Expected = None, caller: Caller) -> Role:
    """Updates a role. The type cannot be changed.

    Raises NoAccess, NotFound, InvalidOperation (built in), EditConflict, ValidationError, NameExists.
    """
    role = access_role_for_update(caller, role_id)
    before = role.document()
    check_expected(expected, before)
    role.name = changes.get("name", role.name).strip()
    role.description = changes.get("description", role.description)
    permissions = changes.get("permissions")
    _check_role(role, permissions if permissions is not None else ())
    role.save()
    if permissions is not None:
        _replace_permissions(role, permissions)
    event = Event(type=EventType.ROLE_UPDATED, subject=role.name, before=before, after=role.document())
    record_change(event, actor=caller)
    return role


@transactional
def delete_role(role_id: int, *, expected: Expected = None, caller: Caller) -> None:
    """Deletes a role. Raises NoAccess, NotFound, InvalidOperation (built in), EditConflict, RoleInUse."""
    role = access_role_for_update(caller, role_id)
    before = role.document()
    check_expected(expected, before)
    check_role_is_unused(role)
    role.delete()
    record(Event(type=EventType.ROLE_DELETED, subject=before["name"], before=before), actor=caller)


def access_role_for_update(caller: Caller, role_id: int) -> Role:
    """Returns the role, locked so that it cannot be assigned until the transaction ends.

    Raises NoAccess, NotFound, InvalidOperation (built in).
    """
    caller.check(Permission.ADMIN)
    role = find_role(Role.objects.select_for_update(), role_id)
    check_not_built_in(role, "changed")
    return role


def _check_role(role: Role, permissions: Sequence[HeldPermission]) -> None:
    """Raises ValidationError, NameExists."""
    check_problems(problems_of_role(role, permissions))
    check_role_name(role.name, but=role)


def _replace_permissions(role: Role, permissions: Sequence[HeldPermission]) -> None:
    role.permissions.all().delete()
    RolePermission.objects.bulk_create(
        RolePermission(role=role, permission=permission.permission, environment_id=permission.environment)
        for permission in dict.fromkeys(permissions)
    )
