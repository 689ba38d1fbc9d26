"""Finds what an import would do that only somebody who may skip change requests can do."""

from groups.access import Caller
from groups.permissions import Permission
from importer.plan.import_plan import Action, Plan
from projects.models import ProjectEnvironment

UNPROPOSABLE = (
    "A change request cannot create flags that are on at once. Import them turned off, and propose to turn them "
    "on:"
)


def list_unproposable(plan: Plan, caller: Caller) -> list[str]:
    """The new flags that would be on at once in an environment that takes change requests."""
    here = {"project": plan.project, "environment": plan.environment}
    if not ProjectEnvironment.objects.filter(**here, required_approvals__isnull=False).exists():
        return []
    if caller.can(Permission.SKIP_CHANGE_REQUEST, **here):
        return []
    return [flag.name for flag in plan.with_action(Action.CREATE) if flag.after and flag.after["enabled"]]
