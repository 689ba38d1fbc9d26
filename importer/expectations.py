"""What saved contexts expect, checked as if an import had been made: with its flags, and with its saved contexts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.utils import timezone

from groups.access import Caller
from importer.plan.import_plan import Plan, SavedContextPlan
from importer.states import PlannedStates, plan_states
from playground.models import SavedContext
from playground.saved_contexts.changed import ChangedExpectation
from playground.saved_contexts.checks import chosen_expectations
from playground.saved_contexts.effects import expectations_changed_by
from playground.saved_contexts.expectations import (
    Checked,
    Expectation,
    check_expectations,
    checked,
    expectations_of,
)

Document = dict[str, Any]


def checked_if_imported(plan: Plan, given: Mapping[str, Any], *, caller: Caller) -> list[Checked]:
    """What would be expected after the import, in the `projects` and `environments` given. Raises ValidationError."""
    planned = _saved_contexts(plan, lambda found: found.after["expectations"])
    stored = SavedContext.objects.readable_by(caller).exclude(expectations=[]).exclude(name__in=list(planned))
    among = sorted([*stored, *planned.values()], key=lambda saved: saved.name)
    expected = chosen_expectations(caller, given, among=among, planned=_projects(plan))
    return _checked(plan_states(plan), expected, caller)


def broken_if_imported(plan: Plan, found: Sequence[Checked], *, caller: Caller) -> list[Checked]:
    """Those of `checked_if_imported` that are met now, or that only the file expects, and would not be met."""
    failing = [one for one in found if not one.met]
    now = check_expectations(caller, [one.expectation for one in failing], reasons=False) if failing else []
    brought = {
        (name, one["flag"], one["environment"])
        for name, saved in _saved_contexts(plan, _brought).items()
        for one in saved.expectations
    }
    return [
        after
        for before, after in zip(now, failing, strict=True)
        if before.met or (after.expectation.saved.name, *after.expectation.place) in brought
    ]


def changed_if_imported(states: PlannedStates, *, caller: Caller) -> list[ChangedExpectation]:
    """The expectations that break or are met again, and those that the file brings and that would not be met."""
    kept = kept_contexts(states.plan)
    changed = expectations_changed_by(caller, *states.pair.snapshots, states.names, instead=kept)
    brought = brought_and_not_met(states, caller=caller)
    now = check_expectations(caller, [one.expectation for one in brought]) if brought else []
    return changed + [ChangedExpectation(*pair) for pair in zip(now, brought, strict=True)]


def kept_contexts(plan: Plan) -> dict[str, SavedContext]:
    """The stored saved contexts that the import changes as it would leave them, with what was expected before, too."""
    found = _saved_contexts(plan, _kept)
    return {name: saved for name, saved in found.items() if saved.pk > 0}


def brought_and_not_met(states: PlannedStates, *, caller: Caller) -> list[Checked]:
    """What only the file expects of the project's flags, and they would not give."""
    plan = states.plan
    contexts = [saved for saved in _saved_contexts(plan, _brought).values() if saved.expectations]
    if not contexts:
        return []
    expected = expectations_of(caller, projects=[plan.project], contexts=contexts, planned=_projects(plan))
    return [one for one in _checked(states, expected, caller) if not one.met]


def _kept(found: SavedContextPlan) -> list[Document]:
    before = found.before["expectations"] if found.before else ()
    return [one for one in found.after["expectations"] if one in before]


def _brought(found: SavedContextPlan) -> list[Document]:
    before = found.before["expectations"] if found.before else ()
    return [one for one in found.after["expectations"] if one not in before]


def _saved_contexts(
    plan: Plan, expectations: Callable[[SavedContextPlan], list[Document]]
) -> dict[str, SavedContext]:
    """The saved contexts of the file as the import would leave them, by name. New ones have ids below zero."""
    names = list(plan.saved_contexts)
    ids = dict(SavedContext.objects.filter(name__in=names).values_list("name", "pk")) if names else {}
    return {
        name: SavedContext(
            pk=ids.get(name, -1 - place),
            name=name,
            project_id=found.project,
            context=found.after["context"],
            note=found.after["note"],
            enforced_in=found.enforced_in,
            expectations=expectations(found),
        )
        for place, (name, found) in enumerate(plan.saved_contexts.items())
    }


def _projects(plan: Plan) -> dict[str, str]:
    """The project of each flag that there is after the import."""
    return {flag.name: plan.project for flag in plan.flags.values() if flag.after is not None}


def _checked(states: PlannedStates, expectations: Sequence[Expectation], caller: Caller) -> list[Checked]:
    """Those of the import's project and environment with its flags afterwards, the others as stored."""
    plan, after = states.plan, states.pair.after
    touched = [
        one.environment == plan.environment and (one.project == plan.project or one.flag in after.positions)
        for one in expectations
    ]
    pairs = list(zip(expectations, touched, strict=True))
    inside = checked([one for one, is_in in pairs if is_in], {after.environment: after}, now=timezone.now())
    outside = check_expectations(caller, [one for one, is_in in pairs if not is_in])
    found = {id(each.expectation): each for each in (*inside, *outside)}
    return [found[id(one)] for one in expectations]
