"""Edits the strategies of a plan's milestones."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.db.transactions import transactional
from groups.access import Caller
from groups.permissions import Permission
from releases.models import Milestone
from releases.plans.access import FlagPath, access_plan_for_update
from releases.plans.approval import note_edit, record_skip, through_gate
from releases.plans.drafts import edit_in_memory, find_strategy
from releases.plans.queries import find_milestone
from releases.plans.steps import record_plan, save_plan, write_strategies

UPDATE = Permission.UPDATE_FEATURE_STRATEGY


def edit_milestone_strategy(
    flag_path: FlagPath,
    plan_key: str,
    milestone_key: str,
    key: str,
    values: Mapping[str, Any],
    *,
    caller: Caller,
) -> Milestone:
    """Changes the given members of a milestone's strategy: of the active milestone, the flag's strategy at once.

    Raises NotFound, NoAccess, ValidationError. Where changes need a change request, editing the active milestone is
    refused, and any other edit ends the approval of the plan.
    """
    payload = {"planId": plan_key, "milestoneId": milestone_key, "id": key, **values}
    with through_gate(flag_path, "updateMilestoneStrategy", payload, is_approved=False):
        return _edit(flag_path, payload, caller)


@transactional
def _edit(flag_path: FlagPath, payload: Mapping[str, Any], caller: Caller) -> Milestone:
    plan = access_plan_for_update(flag_path, payload["planId"], UPDATE, caller)
    milestone = find_milestone(plan, payload["milestoneId"])
    before = find_strategy(milestone, payload["id"])
    after = edit_in_memory(plan.flag, milestone, payload)
    if before == after:
        return milestone
    milestone.save(update_fields=["strategies"])
    if plan.active_id == milestone.pk:
        plan.active = milestone
        write_strategies(plan, milestone, caller)
    else:
        record_skip(flag_path)
    note_edit(plan)
    save_plan(plan, timezone.now())
    record_plan(
        EventType.MILESTONE_STRATEGY_UPDATED, plan, caller, subject=milestone.name, before=before, after=after
    )
    return milestone
