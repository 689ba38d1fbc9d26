"""Archiving and deleting exactly what somebody was shown: refused when it has changed since."""

from collections.abc import Sequence

from flagadmin.errors import Conflict
from flagadmin.transactions import transactional
from groups.access import Caller
from groups.permissions import Permission
from projects.access import access_project_for_update
from projects.actions.archiving import archive_flags
from projects.actions.deletion import delete_project
from projects.actions.deletion_plan import DeletionPlan, plan_project_deletion
from projects.models import Flag


@transactional
def delete_as_planned(project_id: str, fingerprint: str, *, caller: Caller) -> DeletionPlan:
    """Deletes the project if its plan still has this fingerprint; answers the plan.

    Raises Conflict otherwise, and what ``delete_project`` raises.
    """
    access_project_for_update(caller, project_id, Permission.DELETE_PROJECT, for_deletion=True, archived=True)
    plan = _plan(project_id, fingerprint, caller, "Nothing was deleted.")
    delete_project(project_id, caller=caller)
    return plan


@transactional
def archive_as_planned(
    project_id: str, names: Sequence[str] | None, fingerprint: str, *, caller: Caller
) -> list[Flag]:
    """Archives these of the plan's active flags, or all (None). Raises Conflict, and what ``archive_flags`` raises."""
    access_project_for_update(caller, project_id, Permission.DELETE_FEATURE)
    plan = _plan(project_id, fingerprint, caller, "Nothing was archived.")
    return archive_flags(project_id, plan.active_names if names is None else names, caller=caller)


def _plan(project_id: str, fingerprint: str, caller: Caller, so: str) -> DeletionPlan:
    plan = plan_project_deletion(project_id, caller=caller)
    if plan.fingerprint != fingerprint:
        raise Conflict(f"{project_id} has changed since you opened this page. {so} This is how it is now.")
    return plan
