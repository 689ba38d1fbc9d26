"""Plans where changes need a change request: once approved, their steps need no other until they are edited."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flagadmin.core.change_checks import get_skipping_caller
from groups.access import Caller
from groups.permissions import Permission
from releases.applying import applying, is_applied_to, proposing
from releases.derive import ProposedChange
from releases.models import Milestone, ReleasePlan
from releases.plans.access import Place, place_of
from releases.plans.queries import find_following, find_preceding, needs_requests

SKIP = Permission.SKIP_CHANGE_REQUEST


def note_edit(plan: ReleasePlan) -> None:
    """An edited plan is no longer what was approved, unless the edit was."""
    plan.approved = is_let_through(place_of(plan))


def is_let_through(place: Place) -> bool:
    """Whether what is done there now needs no change request, or no other."""
    project, environment = place.project, place.environment
    if is_applied_to(project, environment) or not needs_requests(project, environment):
        return True
    skipping: Caller | None = get_skipping_caller()
    return skipping is not None and skipping.can(SKIP, project=project, environment=environment)


def is_approved_step(plan: ReleasePlan, milestone: Milestone) -> bool:
    """Whether the milestone is the next one, or the one before, of a plan that was approved as it is."""
    return plan.approved and milestone in (find_following(plan), find_preceding(plan))


@contextmanager
def through_gate(place: Place, action: str, payload: Any, *, is_approved: bool) -> Iterator[None]:
    """Around a whole action, at whose end the gate compares."""
    if is_approved:
        with applying(place.project, place.environment):
            yield
        return
    with proposing([ProposedChange(place.feature, action, payload)]):
        yield
