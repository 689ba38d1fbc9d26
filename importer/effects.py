"""The effects of an import: users whose results change, and affected expectations of saved contexts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.utils import timezone

from flagadmin.core.document import Document
from flagadmin.core.errors import NotFound
from groups.access import Caller
from importer.plan.import_plan import Plan, SavedContextPlan
from importer.states import PlannedStates, plan_states
from playground.comparison.answer import Answer
from playground.comparison.budget import Budget
from playground.comparison.contexts import generate_contexts
from playground.comparison.documents import EXAMPLES, make_comparison_document
from playground.comparison.given_contexts import GivenContexts
from playground.comparison.who_changes import WhoChanges, choose_number_of_users, choose_users
from playground.engine.context import Context
from playground.models import SavedContext
from playground.saved_contexts.checks import choose_expectations, make_changes_document
from playground.saved_contexts.effects import find_changed_expectations
from playground.saved_contexts.expectations import (
    ChangedExpectation,
    Checked,
    Expectation,
    check_against,
    check_expectations,
    list_expectations,
)


def check_if_imported(plan: Plan, choice: Mapping[str, Any], *, caller: Caller) -> list[Checked]:
    """Checks the expectations after the import, in the given `projects` and `environments`. Raises ValidationError."""
    planned = _make_saved_contexts(plan, lambda planned_context: planned_context.after["expectations"])
    stored = SavedContext.objects.readable_by(caller).exclude(expectations=[]).exclude(name__in=list(planned))
    among = sorted([*stored, *planned.values()], key=lambda saved: saved.name)
    expected = choose_expectations(caller, choice, among=among, planned=_map_projects(plan))
    return _check_after(plan_states(plan), expected, caller)


def find_broken_if_imported(plan: Plan, results: Sequence[Checked], *, caller: Caller) -> list[Checked]:
    """The unmet results of `check_if_imported` that are met now, or that only the file expects."""
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
    """The expectations that break or are met again, and unmet ones added by the file."""
    stored = predict_saved_contexts(states.plan)
    changed = find_changed_expectations(caller, *states.pair.snapshots, states.names, instead=stored)
    unmet = find_unmet_of_file(states, caller=caller)
    now = check_expectations(caller, [result.expectation for result in unmet]) if unmet else []
    return changed + [ChangedExpectation(*pair) for pair in zip(now, unmet, strict=True)]


def predict_saved_contexts(plan: Plan) -> dict[str, SavedContext]:
    """The stored saved contexts that the import changes, in their new form, including earlier expectations."""
    contexts = _make_saved_contexts(plan, _list_stored_expectations)
    return {name: saved for name, saved in contexts.items() if saved.pk > 0}


def find_unmet_of_file(states: PlannedStates, *, caller: Caller) -> list[Checked]:
    """The expectations of the project's flags that only the file has and that would not be met."""
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
    """The saved contexts of the file in their form after the import, by name. New ones have negative ids."""
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
    """Checks the import's project and environment with its flags afterwards, other places as stored."""
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


MAX_FLAGS = 1_000
"""Changed flags that are compared, the first by name."""
MAX_GENERATED = 3_000
"""Edge cases of flags without a changed user."""
BUDGET = Budget()
FOR_PAGE = Budget(advice="Choose a flag, or fewer users.")


def compare_plan(states: PlannedStates, *, caller: Caller, flag: str = "") -> WhoChanges:
    """Compares the first changed flags, or one, for as many users as quickly possible. Raises NotFound."""
    if flag and flag not in states.names:
        raise NotFound(f"This import does not change the evaluation of {flag}.")
    pair, compared = states.pair, states.names[:MAX_FLAGS]
    # The same users for one flag as for all.
    users, now = choose_number_of_users(len(compared)), timezone.now()
    contexts = choose_users(caller, pair.read(compared), now=now, users=users)

    def make_rare(names: list[str]) -> Sequence[Context]:
        return generate_contexts(pair.read(names), now=now, limit=MAX_GENERATED)

    return WhoChanges(
        *pair.snapshots,
        contexts,
        [flag] if flag else compared,
        budget=FOR_PAGE,
        total=len(states.names),
        make_rare=make_rare,
    )


def answer_plan(plan: Plan, *, caller: Caller, contexts: Mapping[str, Any], limit: int = EXAMPLES) -> Answer:
    """All changed flags in the format of the playground's comparison. Raises ValidationError if there are too many."""
    states, given_contexts = plan_states(plan), GivenContexts(caller, contexts)
    pair, names = states.pair, states.names
    BUDGET.check_size(len(names), given_contexts.most)
    made_contexts = given_contexts.make(lambda most: pair.read(names[:most]))
    who = WhoChanges(*pair.snapshots, made_contexts, names, budget=BUDGET)
    changed = find_changed_if_imported(states, caller=caller)
    return {
        **make_comparison_document(who, saved=given_contexts.saved, limit=limit),
        "expectations": make_changes_document(changed),
    }
