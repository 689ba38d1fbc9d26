"""Plans where changes need a change request: once approved, their steps need no other until they are edited."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flagadmin.core.audit.record import record
from flagadmin.core.change_options import changing, get_change_options
from groups.access import Caller
from projects.projects.policies import needs_request
from releases.applying import is_applied_to
from releases.derive import ProposedChange
from releases.gate_refusal import SKIP, NeedsChangeRequest, make_skip_event
from releases.models import Milestone, ReleasePlan
from releases.plans.access import FlagPath, get_flag_path
from releases.plans.queries import find_following, find_preceding


def note_edit(plan: ReleasePlan) -> None:
    """An edited plan is no longer what was approved, unless the edit was."""
    plan.approved = is_let_through(get_flag_path(plan))


def is_let_through(flag_path: FlagPath) -> bool:
    """Whether what is done there now needs no change request, or no other."""
    return not _needs_another(flag_path) or _find_skipping(flag_path) is not None


def record_skip(flag_path: FlagPath) -> None:
    """Records what the gate does not see, because no answer changes yet, if somebody skips the request it needs."""
    if _needs_another(flag_path) and (caller := _find_skipping(flag_path)) is not None:
        record(make_skip_event(flag_path.project, flag_path.environment, flag_path.feature), actor=caller)


def _needs_another(flag_path: FlagPath) -> bool:
    project, environment = flag_path.project, flag_path.environment
    return not is_applied_to(project, environment) and needs_request(project, [environment])


def _find_skipping(flag_path: FlagPath) -> Caller | None:
    caller: Caller | None = get_change_options().skip_by
    may_skip = caller is not None and caller.can(
        SKIP, project=flag_path.project, environment=flag_path.environment
    )
    return caller if may_skip else None


def is_approved_step(plan: ReleasePlan, milestone: Milestone) -> bool:
    """Whether the milestone is the next one, or the one before, of a plan that was approved as it is."""
    return plan.approved and milestone in (find_following(plan), find_preceding(plan))


@contextmanager
def through_gate(flag_path: FlagPath, action: str, payload: Any, *, is_approved: bool) -> Iterator[None]:
    """Around a whole action, at whose end the gate compares. What a request may do instead is this, not its effect."""
    if is_approved:
        with changing(approved_in=(flag_path.project, flag_path.environment)):
            yield
        return
    try:
        yield
    except NeedsChangeRequest as refusal:
        changes = [ProposedChange(flag_path.feature, action, payload)]
        raise NeedsChangeRequest(refusal.gated._replace(changes=changes)) from None
