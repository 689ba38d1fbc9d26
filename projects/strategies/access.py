"""Finds the strategies of flags."""

import uuid

from flagadmin.core.errors import NotFound
from projects.models import Flag, Strategy


def access_strategy(flag: Flag, environment: str, strategy_id: str) -> Strategy:
    """A strategy of the flag in the environment. Raises NotFound."""
    rows, key = Strategy.objects.filter(flag=flag, environment_id=environment), _read_uuid(strategy_id)
    if key is None or (strategy := rows.filter(pk=key).first()) is None:
        raise NotFound(f"{flag.name} has no strategy {strategy_id} in {environment}.")
    strategy.flag = flag
    return strategy


def _read_uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
