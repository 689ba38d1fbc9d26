"""Finds the parts of an import that no change request can make."""

from collections.abc import Collection, Iterator
from typing import Any

from flagadmin.core.document import Document
from flagadmin.core.errors import Problem
from groups.access import Caller
from groups.permissions import Permission
from importer.plan.import_plan import Action, FlagPlan, Plan
from projects.fingerprint import list_evaluated
from projects.models import ProjectEnvironment

UNPROPOSABLE = (
    "A change request cannot create flags that are on at once. Import them turned off, and propose to turn them "
    "on:"
)
LEFT_OUT = (
    "A change request changes what the environment answers, and leaves out the rest of these flags. Import them again "
    "once it is applied:"
)
ALSO_LEFT_OUT = "A change request leaves these out. Import the file again once it is applied:"
MAX_NAMED = 1_000
_PROPOSED = frozenset({"enabled", "strategies", "variants", "parents", "archived"})


def list_unproposable(plan: Plan, caller: Caller) -> list[str]:
    """The new flags that would be on at once in an environment that requires change requests."""
    here = {"project": plan.project, "environment": plan.environment}
    if not ProjectEnvironment.objects.filter(**here, required_approvals__isnull=False).exists():
        return []
    if caller.can(Permission.SKIP_CHANGE_REQUEST, **here):
        return []
    return _list_on_at_once(plan)


def _list_on_at_once(plan: Plan) -> list[str]:
    return [flag.name for flag in plan.with_action(Action.CREATE) if flag.after and flag.after["enabled"]]


def foresee_request(plan: Plan) -> dict[str, Any]:
    """Predicts the request for the plan without trying it: whether it proposes anything, its needs and omissions.

    Changes of a flag that stays off do not affect results.
    """
    on_at_once = dict.fromkeys(_list_on_at_once(plan))
    changed = [flag for flag in plan.with_action(Action.CHANGE) if _is_on(flag.before) or _is_on(flag.after)]
    left_out = list_left_out(plan, {flag.name for flag in changed})
    needed_first = _map_needed_first(plan, {flag.name for flag in changed})
    is_proposed = on_at_once or any(_changes(flag, _PROPOSED) for flag in changed)
    return {
        "isProposed": bool(is_proposed),
        "unproposable": list(on_at_once)[:MAX_NAMED],
        "leftOut": [name for name in left_out if name not in on_at_once][:MAX_NAMED],
        "alsoLeftOut": [name for name in list_also_left_out(plan) if name not in needed_first][:MAX_NAMED],
        "neededFirst": list(needed_first)[:MAX_NAMED],
    }


def list_left_out(plan: Plan, proposed: Collection[str]) -> list[str]:
    """The flags for which a request with changes of those ``proposed`` omits something: a tag, or a new flag."""
    return [
        flag.name
        for flag in plan.with_action(Action.CREATE, Action.CHANGE)
        if flag.name not in proposed or _changes_more(flag)
    ]


def list_also_left_out(plan: Plan) -> list[str]:
    """The parts of the plan besides flags that a request omits: ``context field tier``."""
    if plan.references is None:
        return []
    kinds = (
        ("context field", plan.references.new_fields),
        ("tag type", plan.references.new_tag_types),
        ("segment", plan.references.new_segments),
    )
    created = [f"{kind} {new['name']}" for kind, new_rows in kinds for new in new_rows]
    names = plan.saved_contexts_with(Action.CREATE) + plan.saved_contexts_with(Action.CHANGE)
    return created + [f"saved context {name}" for name in names]


def find_needed_first(plan: Plan, proposed: Collection[str]) -> Iterator[Problem]:
    """The new segments and parents that must exist before the changes of the flags ``proposed``."""
    for needed, name in _map_needed_first(plan, proposed).items():
        message = f"{name} needs {needed}, which a change request cannot create. Create it first"
        yield Problem(plan.flags[name].path, message)


def _map_needed_first(plan: Plan, proposed: Collection[str]) -> dict[str, str]:
    """Maps each needed object to the first flag that needs it: ``{"segment vip": "cart"}``."""
    new_segments = {new["id"]: new["name"] for new in plan.references.new_segments} if plan.references else {}
    new_flags = {flag.name for flag in plan.with_action(Action.CREATE)}
    needed: dict[str, str] = {}
    for flag in plan.with_action(Action.CHANGE):
        after = flag.after if flag.name in proposed else None
        if after is None:
            continue
        used = {segment for strategy in after["strategies"] for segment in strategy["segments"]}
        for segment in new_segments.keys() & used:
            needed.setdefault(f"segment {new_segments[segment]}", flag.name)
        for parent in new_flags & {parent["feature"] for parent in after["parents"]}:
            needed.setdefault(f"flag {parent}", flag.name)
    return needed


def _is_on(state: Document | None) -> bool:
    return bool(state and state["enabled"])


def _changes_more(flag: FlagPlan) -> bool:
    return _changes(flag, (flag.after or {}).keys() - _PROPOSED)


def _changes(flag: FlagPlan, parts: Collection[str]) -> bool:
    before, after = _with_evaluated(flag.before), _with_evaluated(flag.after)
    return any(before.get(part) != after.get(part) for part in parts)


def _with_evaluated(state: Document | None) -> Document:
    return {**state, "strategies": list_evaluated(state["strategies"])} if state else {}
