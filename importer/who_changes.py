"""Compares the stored flags with the flags as an import would leave them."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from flagadmin.core.errors import NotFound
from groups.access import Caller
from importer.expectations import find_changed_if_imported
from importer.plan.import_plan import Plan
from importer.states import PlannedStates, plan_states
from playground.comparison.answer import Answer
from playground.comparison.budget import Budget
from playground.comparison.contexts import generate_contexts
from playground.comparison.documents import EXAMPLES, make_comparison_document
from playground.comparison.given_contexts import GivenContexts
from playground.comparison.who_changes import WhoChanges, choose_number_of_users, choose_users
from playground.engine.context import Context
from playground.saved_contexts.report import make_changes_document

MAX_FLAGS = 1_000
"""Changed flags that are compared, the first by name."""
MAX_GENERATED = 3_000
"""Edge cases of flags that change for none of the users."""
BUDGET = Budget()
FOR_PAGE = Budget(advice="Choose a flag, or fewer users.")


def compare_plan(states: PlannedStates, *, caller: Caller, flag: str = "") -> WhoChanges:
    """Compares the first changed flags for as many users as are quickly done, or one of them. Raises NotFound."""
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
    """All changed flags, as the playground's comparison answers. Raises ValidationError if there are too many."""
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
