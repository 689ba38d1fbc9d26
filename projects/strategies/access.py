"""Finds the strategies of flags, which their actions lock with the flags."""

import uuid
from collections.abc import Iterable, Sequence

from flagadmin.core.errors import NotFound
from groups.access import Caller, Permission
from projects.access import access_active_flags_for_update
from projects.flags.environments.toggle import find_project_environment
from projects.models import Flag, ProjectEnvironment, Strategy


def access_strategy(flag: Flag, environment: str, strategy_id: str) -> Strategy:
    """A strategy of the flag in the environment. Raises NotFound."""
    [strategy] = access_strategies([(flag, strategy_id)], environment)
    return strategy


def access_strategies(places: Sequence[tuple[Flag, str]], environment: str) -> list[Strategy]:
    """Strategies of flags in the environment, by their ids. One query. Raises NotFound for the first missing one."""
    keys = [_read_uuid(strategy_id) for _, strategy_id in places]
    rows = Strategy.objects.filter(pk__in=filter(None, keys), environment_id=environment)
    stored: dict[tuple[int, uuid.UUID | None], Strategy] = {(row.flag_id, row.pk): row for row in rows}
    strategies = []
    for (flag, strategy_id), key in zip(places, keys, strict=True):
        strategy = stored.get((flag.pk, key))
        if strategy is None:
            raise NotFound(f"{flag.name} has no strategy {strategy_id} in {environment}.")
        strategy.flag = flag
        strategies.append(strategy)
    return strategies


def access_flag_in(
    project_id: str, name: str, environment: str, permission: Permission, *, caller: Caller
) -> tuple[Flag, ProjectEnvironment]:
    """The active flag, locked with its project, and its environment. Raises NotFound, NoAccess."""
    [flag], project_environment = access_flags_in(project_id, [name], environment, permission, caller=caller)
    return flag, project_environment


def access_flags_in(
    project_id: str, names: Iterable[str], environment: str, permission: Permission, *, caller: Caller
) -> tuple[list[Flag], ProjectEnvironment]:
    """Like `access_flag_in`, for several names."""
    flags = access_active_flags_for_update(caller, project_id, names, permission, environment=environment)
    project_environment = find_project_environment(project_id, environment)
    for flag in flags:
        flag.project = project_environment.project
    return flags, project_environment


def _read_uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
