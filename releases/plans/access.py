"""Finds and locks release plans for their actions."""

from typing import Any, NamedTuple

from groups.access import Caller
from groups.permissions import Permission
from projects.access import access_flag_for_update
from projects.flags.environments.toggle import find_project_environment
from projects.models import Flag
from releases.models import ReleasePlan
from releases.plans.queries import find_plan


class FlagPath(NamedTuple):
    """A flag in an environment of its project."""

    project: str
    feature: str
    environment: str


class OfFlagPath:
    """A view whose URL names a flag in an environment."""

    kwargs: dict[str, Any]

    @property
    def flag_path(self) -> FlagPath:
        return FlagPath(self.kwargs["project_id"], self.kwargs["name"], self.kwargs["environment"])


def get_flag_path(plan: ReleasePlan) -> FlagPath:
    return FlagPath(plan.flag.project_id, plan.flag.name, plan.environment_id)


def access_plan_for_update(
    flag_path: FlagPath, plan_key: str, permission: Permission, caller: Caller
) -> ReleasePlan:
    """The plan, locked with its flag and project. Raises NotFound, NoAccess."""
    flag = access_flag_in(flag_path, permission, caller)
    ReleasePlan.objects.select_for_update(of=("self",)).filter(pk=plan_key, flag=flag).first()
    return find_plan(flag, flag_path.environment, plan_key)


def access_flag_in(flag_path: FlagPath, permission: Permission, caller: Caller) -> Flag:
    flag = access_flag_for_update(
        caller, flag_path.project, flag_path.feature, permission, environment=flag_path.environment
    )
    find_project_environment(flag_path.project, flag_path.environment)
    return flag
