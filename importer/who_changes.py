"""Who gets something else after an import: the flags as stored beside the flags as they would be."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from flagadmin.core.errors import NotFound
from groups.access import Caller
from importer.expectations import changed_if_imported
from importer.plan.import_plan import Plan
from importer.states import Planned, planned_states
from playground.comparison.answer import EXAMPLES, check_size, written
from playground.comparison.compare import Comparison
from playground.comparison.contexts import generated
from playground.comparison.given_contexts import GivenContexts
from playground.comparison.table import ContextTable
from playground.comparison.who_changes import WhoChanges, compared, sampled, users_for
from playground.engine.context import Context
from playground.saved_contexts.report import changes_document

MAX_FLAGS = 1_000
"""Changed flags that are compared, the first by name."""
MAX_RULES = 200
"""Changed flags whose rules make the users: reading those of one takes a millisecond."""
MAX_GENERATED = 3_000
"""Contexts made from the rules of flags that change for none of the users."""


def who_changes(plan: Plan, *, flag: str = "", states: Planned | None = None) -> WhoChanges:
    """Compares the first changed flags for as many users as are quickly done, or one of them. Raises NotFound."""
    states = states or planned_states(plan)
    if flag and flag not in states.names:
        raise NotFound(f"This import does not change the evaluation of {flag}.")
    shown = states.names[:MAX_FLAGS]
    # The same users for one flag as for all.
    users, now = users_for(len(shown)), timezone.now()
    contexts = sampled(states.documents(shown[:MAX_RULES]), now=now, users=users)

    def rare(names: list[str]) -> Sequence[Context]:
        return generated(states.documents(names), now=now, limit=MAX_GENERATED)

    compare = [flag] if flag else shown
    return compared(states.before, states.after, contexts, compare, total=len(states.names), rare=rare)


def comparison_document(
    plan: Plan, *, caller: Caller, contexts: Mapping[str, Any], limit: int = EXAMPLES
) -> dict[str, Any]:
    """All changed flags, as the playground's comparison answers. Raises ValidationError if there are too many."""
    states, given = planned_states(plan), GivenContexts(caller, contexts)
    check_size(len(states.names), given.most)
    table = ContextTable(given.make(lambda: states.documents(states.names[:MAX_RULES])))
    comparison = Comparison(states.before, states.after, table)
    answer = written(comparison, states.names, saved=given.saved, limit=limit)
    changed = changed_if_imported(states, caller=caller)
    return answer | {"expectations": changes_document(changed)}
