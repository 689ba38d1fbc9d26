"""Plans in environments that need change requests: once approved, their steps need no other until they are edited."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.utils import timezone

from flagadmin.core.audit.record import read_transaction_time, record
from flagadmin.core.change_options import changing, get_change_options, is_applied_to
from flagadmin.core.errors import pluralize
from flagadmin.core.http.responses import iso
from groups.access import Caller
from projects.fingerprint import UNFORESEEN, list_segments
from projects.projects.queries import needs_request
from releases.derive import ProposedChange
from releases.gate_refusal import NeedsChangeRequest, find_skipping, make_skip_event
from releases.models import Milestone, ReleasePlan
from releases.plans.progress import APPLY, find_unmet
from releases.plans.queries import FlagPath, find_following, find_preceding, get_flag_path, take_snapshot
from releases.plans.steps import foresee_milestone, read_plan_state
from releases.requests.lapses import count_approvals, explain_lapses
from releases.requests.review import BEFORE_UPGRADE, explain_drift, find_causes_near

AGAIN = "It needs another approval: a change request must start the milestone."
ANOTHER_PACE = 'That needs the permission "Apply change requests", or a change request.'


def note_edit(plan: ReleasePlan, caller: Caller) -> None:
    """An edited plan is no longer approved, unless the edit was."""
    note_approval(plan, is_approved=is_let_through(get_flag_path(plan), caller), caller=caller)


def note_approval(plan: ReleasePlan, *, is_approved: bool, caller: Caller) -> None:
    """Records the request that approves the plan, if its changes are being made; none, if a request is skipped.

    The approval covers each milestone's present result. Does not save the plan.
    """
    plan.approved, plan.fingerprints = is_approved, foresee_plan(plan) if is_approved else None
    if (key := get_change_options().approved_by) is not None:
        plan.request_id = key
    elif find_skipping(caller, plan.flag.project_id, plan.environment_id) is not None:
        plan.request = None


def explain_lapse(plan: ReleasePlan) -> str:
    """Why the request that approved the plan no longer has enough valid approvals; "" if it has."""
    request = plan.request
    if request is None or not plan.approved or not needs_request(plan.flag.project_id, [plan.environment_id]):
        return ""
    number, needed = count_approvals(request), request.required_approvals
    if number >= needed:
        return ""
    return (
        f"Change request {request.pk}, which approved the plan, needs {pluralize(needed, 'approval')} and has {number} "
        f"by now. {explain_lapses(request)}"
    )


def foresee_plan(plan: ReleasePlan) -> dict[str, Any]:
    """The fingerprints of its milestones by id, and ``at``, the time of taking them."""
    state, snapshot = read_plan_state(plan), take_snapshot(plan)
    milestones = {
        milestone.pk: foresee_milestone(state, plan.flag.name, snapshot, milestone)
        for milestone in snapshot.milestones
    }
    return {"at": iso(read_transaction_time()), "milestones": milestones}


def explain_moved(plan: ReleasePlan, milestone: Milestone) -> str:
    """Why starting the milestone would not have the approved result; "" if it would, or needs no approval.

    Lists the changes since with their authors and times.
    """
    flag_path, approved = get_flag_path(plan), plan.fingerprints
    if not plan.approved or not needs_request(flag_path.project, [flag_path.environment]):
        return ""
    if approved is None:
        return f"{BEFORE_UPGRADE} {AGAIN}"
    then = approved["milestones"].get(milestone.pk, UNFORESEEN)
    now = foresee_milestone(read_plan_state(plan), flag_path.feature, take_snapshot(plan), milestone)
    if not (sentences := explain_drift(then, now)):
        return ""
    segments, since = list_segments(then, now), datetime.fromisoformat(approved["at"])
    causes = find_causes_near(flag_path.project, flag_path.environment, [flag_path.feature], segments, since)
    return " ".join([*sentences, *(cause.sentence for cause in causes), AGAIN])


def is_let_through(flag_path: FlagPath, caller: Caller) -> bool:
    """Whether the current change there needs no change request, or no further one."""
    project, _, environment = flag_path
    return not _needs_another(flag_path) or find_skipping(caller, project, environment) is not None


def record_skip(flag_path: FlagPath, caller: Caller) -> None:
    """Records a skipped request that the gate does not notice, because no result changes yet."""
    project, feature, environment = flag_path
    if _needs_another(flag_path) and (person := find_skipping(caller, project, environment)) is not None:
        record(make_skip_event(project, environment, feature), actor=person)


def _needs_another(flag_path: FlagPath) -> bool:
    project, environment = flag_path.project, flag_path.environment
    return not is_applied_to(project, environment) and needs_request(project, [environment])


def is_approved_step(plan: ReleasePlan, milestone: Milestone) -> bool:
    """Whether the milestone is the next or the previous one of an approved plan."""
    is_next = milestone in (find_following(plan), find_preceding(plan))
    return plan.approved and is_next and not explain_lapse(plan)


def explain_haste(plan: ReleasePlan, milestone: Milestone, caller: Caller) -> str:
    """Why a step of an approved plan needs another approval: its pace is part of the approval.

    "" if it needs none, because its conditions hold, the caller may apply requests, or it goes back.
    """
    project, _, environment = get_flag_path(plan)
    if not needs_request(project, [environment]) or caller.can(
        APPLY, project=project, environment=environment
    ):
        return ""
    if milestone == find_preceding(plan):
        return f"{plan.name} is done: {ANOTHER_PACE}" if plan.state == ReleasePlan.State.DONE else ""
    unmet = find_unmet(plan, timezone.now())
    return " ".join([f"{milestone.name} would start before its time.", *unmet, ANOTHER_PACE]) if unmet else ""


@contextmanager
def through_gate(
    flag_path: FlagPath, action: str, payload: Any, *, is_approved: bool, why: str = ""
) -> Iterator[None]:
    """Wraps a whole action, at whose end the gate compares. A request then proposes this action, not its effect.

    ``why``: why it needs a request, if not only because it changes a result.
    """
    if is_approved:
        with changing(approved_in=(flag_path.project, flag_path.environment)):
            yield
        return
    try:
        yield
    except NeedsChangeRequest as refusal:
        changes, effect = [ProposedChange(flag_path.feature, action, payload)], why or refusal.gated.effect
        raise refusal.instead(changes=changes, effect=effect) from None
