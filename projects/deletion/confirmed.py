"""Deleting exactly the project that somebody was shown: refused when it has changed since."""

from flagadmin.db.transactions import transactional
from flagadmin.errors import Conflict
from groups.access import Caller
from groups.permissions import Permission
from projects.access import access_project_for_update
from projects.deletion.execute import delete_project
from projects.deletion.plan import DeletionPlan, plan_project_deletion


@transactional
def delete_as_planned(project_id: str, fingerprint: str, *, caller: Caller) -> DeletionPlan:
    """Deletes the project if its plan still has this fingerprint; answers the plan.

    Raises Conflict otherwise, and what ``delete_project`` raises.
    """
    access_project_for_update(caller, project_id, Permission.DELETE_PROJECT, for_deletion=True, archived=True)
    plan = plan_project_deletion(project_id, caller=caller)
    if plan.fingerprint != fingerprint:
        raise Conflict(
            f"{project_id} has changed since you opened this page. Nothing was deleted. This is how it is now."
        )
    delete_project(project_id, caller=caller)
    return plan
