"""Adds safeguards to release plans, changes and removes them; hears of alerts."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Q
from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import check_problems
from groups.access import Caller
from groups.permissions import Permission
from releases.models import ReleasePlan, Safeguard
from releases.plans.access import FlagPath, access_plan_for_update, get_flag_path
from releases.plans.approval import note_edit, record_skip
from releases.plans.queries import UNFINISHED, find_plan, find_safeguard
from releases.plans.steps import record_plan, save_plan
from releases.safeguards.documents import assign_values, safeguard_document
from releases.safeguards.labels import selects
from releases.safeguards.rules import check_room, safeguard_problems

UPDATE = Permission.UPDATE_FEATURE_STRATEGY


@transactional
def set_safeguard(
    flag_path: FlagPath, plan_key: str, values: Mapping[str, Any], *, caller: Caller
) -> ReleasePlan:
    """Adds a safeguard, or changes the one with the id. Raises NotFound, NoAccess, ValidationError."""
    plan = access_plan_for_update(flag_path, plan_key, UPDATE, caller)
    check_problems(safeguard_problems(values))
    if key := values.get("id"):
        safeguard = find_safeguard(plan, key)
        before = safeguard_document(safeguard)
    else:
        check_room(len(plan.safeguards.all()), "The release plan")
        safeguard, before = Safeguard(plan=plan), None
    assign_values(safeguard, values)
    safeguard.save()
    _save(plan)
    after = safeguard_document(safeguard)
    record_plan(EventType.SAFEGUARD_CHANGED, plan, caller, subject=str(safeguard), before=before, after=after)
    return find_plan(plan.flag, plan.environment_id, plan.pk)


@transactional
def remove_safeguard(flag_path: FlagPath, plan_key: str, key: str, *, caller: Caller) -> None:
    """Raises NotFound, NoAccess."""
    plan = access_plan_for_update(flag_path, plan_key, UPDATE, caller)
    safeguard = find_safeguard(plan, key)
    before = safeguard_document(safeguard)
    safeguard.delete()
    _save(plan)
    record_plan(EventType.SAFEGUARD_DELETED, plan, caller, subject=str(safeguard), before=before)


def _save(plan: ReleasePlan) -> None:
    """An edited plan is looked at again with the safeguards that it has then."""
    plan = find_plan(plan.flag, plan.environment_id, plan.pk)
    note_edit(plan)
    record_skip(get_flag_path(plan))
    save_plan(plan, timezone.now())


@transactional
def note_alert(name: str, labels: Mapping[str, str], *, fires: bool) -> int:
    """Has the safeguards of flags and unfinished plans that wait for this alert know whether it fires.

    A safeguard takes the alerts whose labels have the values that it selects. It is looked at at once. A repeated alert
    changes nothing. Returns the number of safeguards.
    """
    safeguards = Safeguard.objects.filter(
        Q(plan=None) | Q(plan__state__in=UNFINISHED), source=Safeguard.Source.ALERT, metric=name
    ).filter(Q(firing_since=None) if fires else ~Q(firing_since=None))
    keys = {safeguard.pk: safeguard.plan_id for safeguard in safeguards if selects(safeguard.labels, labels)}
    now = timezone.now()
    Safeguard.objects.filter(pk__in=keys).update(firing_since=now if fires else None)
    Safeguard.objects.filter(pk__in=keys, plan=None).update(look_at=now)
    running = ReleasePlan.objects.filter(pk__in=keys.values(), state=ReleasePlan.State.RUNNING)
    running.update(look_at=now)
    return len(keys)
