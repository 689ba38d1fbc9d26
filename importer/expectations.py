"""Checks the expectations of saved contexts as if an import had been made, its own saved contexts included."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.utils import timezone

from flagadmin.core.document import Document
from groups.access import Caller
from importer.plan.import_plan import Plan, SavedContextPlan
from importer.states import PlannedStates, plan_states
from playground.models import SavedContext
from playground.saved_contexts.changed import ChangedExpectation
from playground.saved_contexts.checks import choose_expectations
from playground.saved_contexts.effects import find_changed_expectations
from playground.saved_contexts.expectations import (
    Checked,
    Expectation,
    check_against,
    check_expectations,
    list_expectations,
)


def check_if_imported(plan: Plan, choice: Mapping[str, Any], *, caller: Caller) -> list[Checked]:
    """Checks the expectations after the import, in the `projects` and `environments` given. Raises ValidationError."""
    planned = _make_saved_contexts(plan, lambda planned_context: planned_context.after["expectations"])
    stored = SavedContext.objects.readable_by(caller).exclude(expectations=[]).exclude(name__in=list(planned))
    among = sorted([*stored, *planned.values()], key=lambda saved: saved.name)
    expected = choose_expectations(caller, choice, among=among, planned=_map_projects(plan))
    return _check_after(plan_states(plan), expected, caller)


def find_broken_if_imported(plan: Plan, results: Sequence[Checked], *, caller: Caller) -> list[Checked]:
    """Finds those of `check_if_imported` that are met now, or that only the file expects, and would not be met."""
    failing = [result for result in results if not result.met]
    now = (
        check_expectations(caller, [result.expectation for result in failing], reasons=False)
        if failing
        else []
    )
    brought = {
        (name, expectation["flag"], expectation["environment"])
        for name, saved in _make_saved_contexts(plan, _list_new_expectations).items()
        for expectation in saved.expectations
    }
    return [
        after
        for before, after in zip(now, failing, strict=True)
        if before.met or (after.expectation.saved.name, *after.expectation.place) in brought
    ]


def find_changed_if_imported(states: PlannedStates, *, caller: Caller) -> list[ChangedExpectation]:
    """The expectations that break or are met again, and those that the file brings and that would not be met."""
    stored = predict_saved_contexts(states.plan)
    changed = find_changed_expectations(caller, *states.pair.snapshots, states.names, instead=stored)
    unmet = find_unmet_of_file(states, caller=caller)
    now = check_expectations(caller, [result.expectation for result in unmet]) if unmet else []
    return changed + [ChangedExpectation(*pair) for pair in zip(now, unmet, strict=True)]


def predict_saved_contexts(plan: Plan) -> dict[str, SavedContext]:
    """The stored saved contexts that the import changes as it would leave them, with what was expected before, too."""
    contexts = _make_saved_contexts(plan, _list_stored_expectations)
    return {name: saved for name, saved in contexts.items() if saved.pk > 0}


def find_unmet_of_file(states: PlannedStates, *, caller: Caller) -> list[Checked]:
    """Finds what only the file expects of the project's flags and they would not return."""
    plan = states.plan
    contexts = [
        saved for saved in _make_saved_contexts(plan, _list_new_expectations).values() if saved.expectations
    ]
    if not contexts:
        return []
    expected = list_expectations(
        caller, projects=[plan.project], contexts=contexts, planned=_map_projects(plan)
    )
    return [result for result in _check_after(states, expected, caller) if not result.met]


def _list_stored_expectations(planned: SavedContextPlan) -> list[Document]:
    before = planned.before["expectations"] if planned.before else ()
    return [expectation for expectation in planned.after["expectations"] if expectation in before]


def _list_new_expectations(planned: SavedContextPlan) -> list[Document]:
    before = planned.before["expectations"] if planned.before else ()
    return [expectation for expectation in planned.after["expectations"] if expectation not in before]


def _make_saved_contexts(
    plan: Plan, expectations: Callable[[SavedContextPlan], list[Document]]
) -> dict[str, SavedContext]:
    """The saved contexts of the file as the import would leave them, by name. New ones have ids below zero."""
    names = list(plan.saved_contexts)
    ids = dict(SavedContext.objects.filter(name__in=names).values_list("name", "pk")) if names else {}
    return {
        name: SavedContext(
            pk=ids.get(name, -1 - index),
            name=name,
            project_id=planned.project,
            context=planned.after["context"],
            note=planned.after["note"],
            enforced_in=planned.enforced_in,
            expectations=expectations(planned),
        )
        for index, (name, planned) in enumerate(plan.saved_contexts.items())
    }


def _map_projects(plan: Plan) -> dict[str, str]:
    """Maps each flag that exists after the import to its project."""
    return {flag.name: plan.project for flag in plan.flags.values() if flag.after is not None}


def _check_after(states: PlannedStates, expectations: Sequence[Expectation], caller: Caller) -> list[Checked]:
    """Checks the import's project and environment with its flags afterwards, the others as stored."""
    plan, after = states.plan, states.pair.after
    touched = [
        expectation.environment == plan.environment
        and (expectation.project == plan.project or expectation.flag in after.positions)
        for expectation in expectations
    ]
    pairs = list(zip(expectations, touched, strict=True))
    inside = check_against(
        [expectation for expectation, is_in in pairs if is_in], {after.environment: after}, now=timezone.now()
    )
    outside = check_expectations(caller, [expectation for expectation, is_in in pairs if not is_in])
    results = {id(result.expectation): result for result in (*inside, *outside)}
    return [results[id(expectation)] for expectation in expectations]
