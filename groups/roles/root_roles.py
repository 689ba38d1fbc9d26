"""Finds root roles. Requests name them by id or by name."""

from flagadmin.core.errors import Problem, choices
from groups.models import Role


def root_role_id(given: int | str | None, problems: list[Problem]) -> int | None:
    """The role's id, or None. For an unknown role, adds a problem that lists the available ones."""
    if given is None:
        return None
    roles = Role.objects.root()
    for role in roles:
        if given == role.id or (isinstance(given, str) and given.casefold() == role.name.casefold()):
            return role.id
    names = choices(f"{role.id} ({role.name})" for role in roles)
    problems.append(Problem("rootRole", f"Root role {given} not found. Available: {names}."))
    return None
