"""Root roles, named in requests by their id or their name."""

from flagadmin.errors import Problem, choices
from groups.models import Role


def root_roles() -> list[Role]:
    return list(Role.objects.filter(type__in=[Role.Type.ROOT, Role.Type.ROOT_CUSTOM]).order_by("id"))


def root_role_id(given: int | str | None, problems: list[Problem]) -> int | None:
    """Its id; None for none. Adds a problem naming the choices for one that is not there."""
    if given is None:
        return None
    roles = root_roles()
    for role in roles:
        if given == role.id or (isinstance(given, str) and given.casefold() == role.name.casefold()):
            return role.id
    names = choices(f"{role.id} ({role.name})" for role in roles)
    problems.append(Problem("rootRole", f"There is no root role {given}. Available: {names}."))
    return None
