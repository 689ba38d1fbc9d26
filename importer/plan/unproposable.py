"""Finds the parts of an import that no change request can make."""

from collections.abc import Collection
from typing import Any

from flagadmin.core.document import Document
from groups.access import Caller
from groups.permissions import Permission
from importer.plan.import_plan import Action, FlagPlan, Plan
from projects.models import ProjectEnvironment
from releases.derive import list_evaluated

UNPROPOSABLE = (
    "A change request cannot create flags that are on at once. Import them turned off, and propose to turn them "
    "on:"
)
LEFT_OUT = (
    "A change request changes what the environment answers, and leaves out the rest of these flags. Import them again "
    "once it is applied:"
)
MAX_NAMED = 1_000
_PROPOSED = frozenset({"enabled", "strategies", "variants", "parents", "archived"})


def list_unproposable(plan: Plan, caller: Caller) -> list[str]:
    """The new flags that would be on at once in an environment that takes change requests."""
    here = {"project": plan.project, "environment": plan.environment}
    if not ProjectEnvironment.objects.filter(**here, required_approvals__isnull=False).exists():
        return []
    if caller.can(Permission.SKIP_CHANGE_REQUEST, **here):
        return []
    return _list_on_at_once(plan)


def _list_on_at_once(plan: Plan) -> list[str]:
    return [flag.name for flag in plan.with_action(Action.CREATE) if flag.after and flag.after["enabled"]]


def foresee_request(plan: Plan) -> dict[str, Any]:
    """What a request would make of the plan, without trying it: whether it has anything to propose, and what it leaves.

    A change of a flag that stays off answers nothing.
    """
    on_at_once = dict.fromkeys(_list_on_at_once(plan))
    changed = [flag for flag in plan.with_action(Action.CHANGE) if _is_on(flag.before) or _is_on(flag.after)]
    left_out = list_left_out(plan, {flag.name for flag in changed})
    is_proposed = on_at_once or any(_changes(flag, _PROPOSED) for flag in changed)
    return {
        "isProposed": bool(is_proposed),
        "unproposable": list(on_at_once)[:MAX_NAMED],
        "leftOut": [name for name in left_out if name not in on_at_once][:MAX_NAMED],
    }


def list_left_out(plan: Plan, proposed: Collection[str]) -> list[str]:
    """The flags of which a request with changes of those ``proposed`` leaves something out: a tag, or a new flag."""
    return [
        flag.name
        for flag in plan.with_action(Action.CREATE, Action.CHANGE)
        if flag.name not in proposed or _changes_more(flag)
    ]


def _is_on(state: Document | None) -> bool:
    return bool(state and state["enabled"])


def _changes_more(flag: FlagPlan) -> bool:
    return _changes(flag, (flag.after or {}).keys() - _PROPOSED)


def _changes(flag: FlagPlan, parts: Collection[str]) -> bool:
    before, after = _with_evaluated(flag.before), _with_evaluated(flag.after)
    return any(before.get(part) != after.get(part) for part in parts)


def _with_evaluated(state: Document | None) -> Document:
    return {**state, "strategies": list_evaluated(state["strategies"])} if state else {}
