"""Creates a flag that is on from the start, in one environment."""

from flagadmin.core.db.transactions import transactional
from groups.access import Caller
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT, ROLLOUT
from projects.flags.actions import NewFlag, create_flag
from projects.flags.environments.actions import enable_flag
from projects.models import Flag
from projects.strategies.actions import add_strategy


@transactional
def create_running_flag(
    project_id: str, new: NewFlag, environment: str, rollout: int | None, *, caller: Caller
) -> Flag:
    """Creates a flag and turns it on for a percentage of users, or with the default strategy (None).

    Without an ``environment`` it is off in every one. Raises the errors of ``create_flag``, ``add_strategy`` and
    ``enable_flag``.
    """
    flag = create_flag(project_id, new, caller=caller)
    if environment:
        if rollout is not None:
            strategy = {"name": FLEXIBLE_ROLLOUT, "parameters": {ROLLOUT.name: str(rollout)}}
            add_strategy(project_id, new.name, environment, strategy, caller=caller)
        enable_flag(project_id, new.name, environment, caller=caller)
    return flag
