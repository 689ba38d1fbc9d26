"""Finds and locks release plans for their actions."""

from typing import NamedTuple

from groups.access import Caller
from groups.permissions import Permission
from projects.access import access_flag_for_update
from projects.flags.environments.toggle import find_project_environment
from projects.models import Flag
from releases.models import ReleasePlan
from releases.plans.queries import find_plan


class Place(NamedTuple):
    """A flag in an environment of its project."""

    project: str
    feature: str
    environment: str


def place_of(plan: ReleasePlan) -> Place:
    return Place(plan.flag.project_id, plan.flag.name, plan.environment_id)


def access_plan_for_update(
    place: Place, plan_key: str, permission: Permission, caller: Caller
) -> ReleasePlan:
    """The plan, locked with its flag and project. Raises NotFound, NoAccess."""
    flag = access_flag_in(place, permission, caller)
    ReleasePlan.objects.select_for_update(of=("self",)).filter(pk=plan_key, flag=flag).first()
    return find_plan(flag, place.environment, plan_key)


def access_flag_in(place: Place, permission: Permission, caller: Caller) -> Flag:
    flag = access_flag_for_update(
        caller, place.project, place.feature, permission, environment=place.environment
    )
    find_project_environment(place.project, place.environment)
    return flag
