"""Rules for roles, and for changing and deleting them."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import count

from django.apps import apps

from flagadmin.core.errors import AppError, InvalidOperation, NameExists, Problem, RoleInUse, collect_errors
from flagadmin.core.wording import choices, pluralize
from groups.models import Role
from groups.models.roles import HeldPermission
from groups.permissions import KEPT_WHEN_LIMITED, Permission, Scope
from groups.roles.holders import count_holders

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
