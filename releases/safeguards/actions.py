"""Adds safeguards to release plans, changes and removes them; hears of alerts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import hash_document
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
MAX_FIRING = 1000
"""The alerts of one name and of different labels that a safeguard tells apart."""


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

    A safeguard takes the alerts whose labels have the values that it selects, and waits until all of them are over. It
    is looked at at once. A repeated alert changes nothing. Returns the number of safeguards that it breaches or mends.
    """
    of_any = Q(plan=None) | Q(plan__state__in=UNFINISHED)
    safeguards = Safeguard.objects.filter(of_any, source=Safeguard.Source.ALERT, metric=name).order_by("pk")
    now, alert = timezone.now(), hash_document(dict(labels))
    keys: dict[str, str | None] = {}
    for safeguard in safeguards.select_for_update(of=("self",)):
        if selects(safeguard.labels, labels) and _note_one(safeguard, alert, now if fires else None):
            keys[safeguard.pk] = safeguard.plan_id
    Safeguard.objects.filter(pk__in=keys, plan=None).update(look_at=now)
    running = ReleasePlan.objects.filter(pk__in=keys.values(), state=ReleasePlan.State.RUNNING)
    running.update(look_at=now)
    return len(keys)


def _note_one(safeguard: Safeguard, alert: str, since: datetime | None) -> bool:
    """``since``: when this alert began to fire; None: it is over. Returns whether it is the first one, or the last."""
    others = [each for each in safeguard.firing if each != alert]
    firing = [*others[: MAX_FIRING - 1], alert] if since else others
    was_firing, safeguard.firing_since = safeguard.firing_since, safeguard.firing_since or since
    if not firing:
        safeguard.firing_since = None
    if firing != safeguard.firing or safeguard.firing_since != was_firing:
        safeguard.firing = firing
        safeguard.save(update_fields=["firing", "firing_since"])
    return bool(was_firing) != bool(safeguard.firing_since)
