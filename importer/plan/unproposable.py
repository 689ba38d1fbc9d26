"""Finds the parts of an import that no change request can make."""

from collections.abc import Collection

from groups.access import Caller
from groups.permissions import Permission
from importer.plan.import_plan import Action, FlagPlan, Plan
from importer.plan.stored import Document
from projects.models import ProjectEnvironment

UNPROPOSABLE = (
    "A change request cannot create flags that are on at once. Import them turned off, and propose to turn them "
    "on:"
)
LEFT_OUT = (
    "A change request changes what the environment answers, and leaves out the rest of these flags. Import them again "
    "once it is applied:"
)
_PROPOSED = frozenset({"enabled", "strategies", "variants", "parents", "archived"})


def list_unproposable(plan: Plan, caller: Caller) -> list[str]:
    """The new flags that would be on at once in an environment that takes change requests."""
    here = {"project": plan.project, "environment": plan.environment}
    if not ProjectEnvironment.objects.filter(**here, required_approvals__isnull=False).exists():
        return []
    if caller.can(Permission.SKIP_CHANGE_REQUEST, **here):
        return []
    return [flag.name for flag in plan.with_action(Action.CREATE) if flag.after and flag.after["enabled"]]


def list_left_out(plan: Plan, proposed: Collection[str]) -> list[str]:
    """The flags of which a request with changes of those ``proposed`` leaves something out: a tag, or a new flag."""
    return [
        flag.name
        for flag in plan.with_action(Action.CREATE, Action.CHANGE)
        if flag.name not in proposed or _changes_more(flag)
    ]


def list_never_proposed(plan: Plan) -> list[str]:
    """As `list_left_out` without having tried it: a change of a flag that stays off answers nothing."""
    changed = plan.with_action(Action.CHANGE)
    return list_left_out(plan, {flag.name for flag in changed if _is_on(flag.before) or _is_on(flag.after)})


def _is_on(state: Document | None) -> bool:
    return bool(state and state["enabled"])


def _changes_more(flag: FlagPlan) -> bool:
    before, after = flag.before or {}, flag.after or {}
    return any(before.get(part) != after[part] for part in after.keys() - _PROPOSED)
