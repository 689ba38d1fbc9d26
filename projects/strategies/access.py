"""Finds the strategies of flags."""

import uuid

from flagadmin.core.errors import NotFound
from projects.models import Flag, Strategy


def access_strategy(flag: Flag, environment: str, strategy_id: str) -> Strategy:
    """A strategy of the flag in the environment. Raises NotFound."""
    rows = Strategy.objects.filter(flag=flag, environment_id=environment, pk=_read_uuid(strategy_id))
    if (strategy := rows.first()) is None:
        raise NotFound(f"{flag.name} has no strategy {strategy_id} in {environment}.")
    strategy.flag = flag
    return strategy


def _read_uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
