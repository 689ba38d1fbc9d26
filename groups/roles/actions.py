"""Actions on roles: admins create, update and delete custom roles. Built-in roles cannot be changed.

Rules for roles, and for changing and deleting them.

Reads roles.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import TypedDict

from django.apps import apps
from django.db.models import QuerySet

from flagadmin.core.audit.record import Event, EventType, record, record_change
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import (
    AppError,
    InvalidOperation,
    NameExists,
    Problem,
    RoleInUse,
    check_problems,
    choices,
    collect_errors,
    pluralize,
)
from groups.access import Caller, Permission
from groups.models import Role, RolePermission
from groups.models.roles import HeldPermission
from groups.permissions import KEPT_WHEN_LIMITED, ROLE_READERS, Scope
from groups.roles.holders import count_holders


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


CUSTOM_TYPES = (Role.Type.CUSTOM.value, Role.Type.ROOT_CUSTOM.value)
MAX_LIMITED_NAME_LENGTH = 100  # characters


def problems_of_role(role: Role, permissions: Sequence[HeldPermission]) -> Iterator[Problem]:
    if not role.name:
        yield Problem("name", "A role needs a name.")
    if role.type not in CUSTOM_TYPES:
        yield Problem("type", f"{role.type} is not a role type. Available: {choices(CUSTOM_TYPES)}.")
        return
    environments = read_environment_names()
    for index, permission in enumerate(permissions):
        for message in _find_faults(role, permission, environments):
            yield Problem(f"permissions[{index}]", message)


def _find_faults(role: Role, role_permission: HeldPermission, environments: list[str]) -> Iterator[str]:
    if role_permission.permission not in Permission.__members__:
        yield f"{role_permission.permission} is not a permission. GET /api/admin/permissions lists them."
        return
    permission = Permission[role_permission.permission]
    if permission is Permission.ADMIN:
        yield "Only the built-in role Admin can have ADMIN."
    elif (permission.scope is Scope.ROOT) != role.is_root:
        role_type = "root-custom" if permission.scope is Scope.ROOT else "custom"
        yield f"{role_permission.permission} belongs in a role of type {role_type}."
    if role_permission.environment is None:
        return
    if permission.scope is not Scope.ENVIRONMENT:
        yield f"{role_permission.permission} cannot be limited to one environment."
    elif role_permission.environment not in environments:
        yield f"Environment {role_permission.environment} not found. Available: {choices(environments)}."


def limit_permissions(
    permissions: Iterable[HeldPermission], environments: Sequence[str]
) -> list[HeldPermission]:
    """Limits permissions to these environments, leaving out those that affect all (see KEPT_WHEN_LIMITED)."""
    limited: dict[HeldPermission, None] = {}
    for each in permissions:
        permission = Permission.__members__.get(each.permission)
        if permission in KEPT_WHEN_LIMITED:
            limited[each] = None
        elif permission is not None and permission.scope is Scope.ENVIRONMENT:
            places = environments if each.environment is None else {each.environment} & {*environments}
            limited.update((HeldPermission(each.permission, environment), None) for environment in places)
    return list(limited)


def name_limited_role(role: Role, environments: Sequence[str]) -> str:
    """``Member · development``. Numbered if a role with other permissions has the name."""
    name = f"{role.name} · {', '.join(environments)}"
    if len(name) > MAX_LIMITED_NAME_LENGTH:
        name = f"{role.name[:MAX_LIMITED_NAME_LENGTH]} · {pluralize(len(environments), 'environment')}"
    used_names = set(Role.objects.filter(name__startswith=name).values_list("name", flat=True))
    return next(
        each
        for number in count(1)
        if (each := name if number == 1 else f"{name} ({number})") not in used_names
    )


def check_role_name(name: str, *, but: Role | None = None) -> None:
    """Raises NameExists if another role has this name."""
    if Role.objects.filter(name=name).exclude(pk=but.pk if but and but.pk else 0).exists():
        raise NameExists(f"A role named {name} already exists.")


def check_not_built_in(role: Role, participle: str) -> None:
    """Raises InvalidOperation if the role is built in. ``participle`` completes "cannot be …"."""
    if role.is_built_in:
        raise InvalidOperation(f"{role.name} is a built-in role and cannot be {participle}.")


def check_role_is_unused(role: Role) -> None:
    """Raises RoleInUse if the role has holders."""
    use = count_holders(role)
    if not use:
        return
    counts = (
        (use.users, "person", "people"),
        (use.service_accounts, "service account", "service accounts"),
        (use.groups, "group", "groups"),
    )
    holders = ", ".join(pluralize(n, singular, plural) for n, singular, plural in counts if n)
    disabled = f" ({use.disabled} of them disabled)" if use.disabled else ""
    raise RoleInUse(
        f"{role.name} is granted to {holders}{disabled}. Revoke it from them first.",
        extra={
            "users": use.users,
            "serviceAccounts": use.service_accounts,
            "groups": use.groups,
            "disabled": use.disabled,
        },
    )


def find_role_blockers(role: Role) -> list[AppError]:
    """The reasons why the role cannot be deleted. Does not write."""
    if role.is_built_in:  # revoking it would not help
        return collect_errors(partial(check_not_built_in, role, "deleted"))
    return collect_errors(partial(check_role_is_unused, role))


def describe_blockers(role: Role) -> str:
    """The reasons why the role cannot be deleted, as one string; "" if there are none."""
    return " ".join(error.message for error in find_role_blockers(role))


def read_environment_names() -> list[str]:
    model = apps.get_model("projects", "Environment")  # by name, because groups must not import projects
    return list(model.objects.order_by("sort_order", "name").values_list("name", flat=True))


def find_root_role_id(name: int | str | None, problems: list[Problem]) -> int | None:
    """The role's id; None without a role. For an unknown role, adds a problem that lists the available ones."""
    if name is None:
        return None
    roles = Role.objects.root()
    for role in roles:
        if name == role.id or (isinstance(name, str) and name.casefold() == role.name.casefold()):
            return role.id
    names = choices(f"{role.id} ({role.name})" for role in roles)
    problems.append(Problem("rootRole", f"Root role {name} not found. Available: {names}."))
    return None


def access_role(caller: Caller, role_id: int) -> Role:
    """Returns the role. Raises NoAccess, NotFound."""
    caller.check_any(ROLE_READERS)
    return find_role(Role.objects.all(), role_id)


def find_role(roles: QuerySet[Role], role_id: int) -> Role:
    """The role among these. Raises NotFound."""
    return get_or_404(roles, f"Role with id {role_id} not found.", pk=role_id)


def find_equal_role(permissions: Collection[HeldPermission]) -> Role | None:
    """The oldest project role with exactly these permissions. Two queries."""
    roles = Role.objects.for_projects().order_by("id")
    held_by_role: dict[int, set[HeldPermission]] = defaultdict(set)
    for row in RolePermission.objects.filter(role__in=roles):
        held_by_role[row.role_id].add(row.held)
    return next((role for role in roles if held_by_role[role.pk] == set(permissions)), None)
