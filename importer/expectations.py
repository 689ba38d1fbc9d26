"""What saved contexts expect, checked as if an import had been made."""

from collections.abc import Sequence

from django.utils import timezone

from groups.access import Caller
from importer.plan.import_plan import Plan
from importer.who_changes import planned_states
from playground.saved_contexts.expectations import Checked, Expectation, check_expectations, checked


def checked_as_if_imported(
    plan: Plan, expectations: Sequence[Expectation], *, caller: Caller
) -> list[Checked]:
    """Those of the import's project and environment with its flags afterwards, the others as stored."""
    after = planned_states(plan).after
    touched = [
        one.environment == plan.environment and (one.project == plan.project or one.flag in after.positions)
        for one in expectations
    ]
    pairs = list(zip(expectations, touched, strict=True))
    inside = checked([one for one, is_in in pairs if is_in], {after.environment: after}, now=timezone.now())
    outside = check_expectations(caller, [one for one, is_in in pairs if not is_in])
    found = {id(each.expectation): each for each in (*inside, *outside)}
    return [found[id(one)] for one in expectations]
