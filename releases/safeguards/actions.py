"""Adds, changes and removes safeguards of release plans and of flags, and charts of impact metrics; hears of alerts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.errors import ValidationError, check_problems
from groups.access import Caller, Permission
from projects.access import access_flag_for_update
from projects.models import Flag
from projects.projects.queries import needs_request
from releases.derive import ProposedChange
from releases.gate_refusal import SKIP, Gated, NeedsChangeRequest
from releases.models import MetricChart, ReleasePlan, Safeguard
from releases.plans.approval import is_let_through, note_edit, record_skip
from releases.plans.queries import (
    UNFINISHED,
    FlagPath,
    access_flag_in,
    access_plan_for_update,
    find_plan,
    find_safeguard,
    get_flag_path,
)
from releases.plans.steps import record_at, record_plan, save_plan
from releases.safeguards.queries import (
    assign_values,
    chart_document,
    find_chart,
    find_flag_safeguard,
    get_safeguard_path,
    read_charts,
    read_safeguards,
    safeguard_document,
)
from releases.safeguards.rules import MAX_CHARTS, check_room, safeguard_problems, selects

UPDATE = Permission.UPDATE_FEATURE_STRATEGY
MAX_FIRING = 1000
"""Firing alerts with different labels that a safeguard tracks."""


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
    _save(plan, caller)
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
    _save(plan, caller)
    record_plan(EventType.SAFEGUARD_DELETED, plan, caller, subject=str(safeguard), before=before)


def _save(plan: ReleasePlan, caller: Caller) -> None:
    """Reschedules the look at an edited plan with its present safeguards."""
    plan = find_plan(plan.flag, plan.environment_id, plan.pk)
    note_edit(plan, caller)
    record_skip(get_flag_path(plan), caller)
    save_plan(plan, timezone.now())


def may_breach(caller: Caller, safeguard: Safeguard) -> bool:
    """Whether the caller may do themselves, and without a change request, what the safeguard does once breached."""
    if caller.is_admin:
        return True
    project, _, environment = get_safeguard_path(safeguard)
    turns_off = safeguard.action == Safeguard.Action.TURN_OFF
    needed = Permission.UPDATE_FEATURE_ENVIRONMENT if turns_off else Permission.UPDATE_FEATURE_STRATEGY
    permissions = [needed, *([SKIP] if needs_request(project, [environment]) else [])]
    return all(caller.can(each, project=project, environment=environment) for each in permissions)


@transactional
def note_alert(name: str, labels: Mapping[str, str], *, fires: bool, caller: Caller) -> int:
    """Tells the safeguards of flags and unfinished plans that wait for this alert whether it fires.

    A safeguard accepts alerts whose labels have the selected values, and waits until all of them are over. It is
    checked at once. A repeated alert changes nothing. It reaches the safeguards that the caller `may_breach`.
    Returns the number of safeguards that it breaches or mends.
    """
    of_any = Q(plan=None) | Q(plan__state__in=UNFINISHED)
    safeguards = Safeguard.objects.filter(of_any, source=Safeguard.Source.ALERT, metric=name).order_by("pk")
    now, alert = timezone.now(), hash_document(dict(labels))
    keys: dict[str, str | None] = {}
    for safeguard in safeguards.select_related("flag", "plan__flag").select_for_update(of=("self",)):
        is_meant = selects(safeguard.labels, labels) and may_breach(caller, safeguard)
        if is_meant and _note_one(safeguard, alert, now if fires else None):
            keys[safeguard.pk] = safeguard.plan_id
    Safeguard.objects.filter(pk__in=keys, plan=None).update(look_at=now)
    running = ReleasePlan.objects.filter(pk__in=keys.values(), state=ReleasePlan.State.RUNNING)
    running.update(look_at=now)
    return len(keys)


def _note_one(safeguard: Safeguard, alert: str, since: datetime | None) -> bool:
    """``since``: when this alert began to fire; None: it is over. Returns whether it is the first or the last one."""
    others = [each for each in safeguard.firing if each != alert]
    firing = [*others[: MAX_FIRING - 1], alert] if since else others
    was_firing, safeguard.firing_since = safeguard.firing_since, safeguard.firing_since or since
    if not firing:
        safeguard.firing_since = None
    if firing != safeguard.firing or safeguard.firing_since != was_firing:
        safeguard.firing = firing
        safeguard.save(update_fields=["firing", "firing_since"])
    return bool(was_firing) != bool(safeguard.firing_since)


UPDATE_FLAG = Permission.UPDATE_FEATURE_ENVIRONMENT


@transactional
def set_flag_safeguard(flag_path: FlagPath, values: Mapping[str, Any], *, caller: Caller) -> Safeguard:
    """Adds a safeguard, or changes the one with the id. A breached one turns the flag off.

    Raises NotFound, NoAccess, ValidationError, and NeedsChangeRequest.
    """
    flag = access_flag_in(flag_path, UPDATE_FLAG, caller)
    check_problems(safeguard_problems(values))
    if key := values.get("id"):
        safeguard = find_flag_safeguard(flag, flag_path.environment, key)
        before = safeguard_document(safeguard)
    else:
        check_room(
            read_safeguards(flag, flag_path.environment).count(), f"{flag.name} in {flag_path.environment}"
        )
        safeguard, before = Safeguard(flag=flag, environment_id=flag_path.environment), None
    _check_approved(flag_path, "changeFeatureEnvSafeguard", {"safeguard": values}, caller)
    assign_values(safeguard, values)
    safeguard.approved = needs_request(flag_path.project, [flag_path.environment])
    safeguard.look_at = timezone.now()
    safeguard.save()
    after = safeguard_document(safeguard)
    record_at(
        flag_path, EventType.SAFEGUARD_CHANGED, caller, subject=str(safeguard), before=before, after=after
    )
    return safeguard


@transactional
def remove_flag_safeguard(flag_path: FlagPath, key: str, *, caller: Caller) -> None:
    """Raises NotFound, NoAccess, and NeedsChangeRequest."""
    flag = access_flag_in(flag_path, UPDATE_FLAG, caller)
    safeguard = find_flag_safeguard(flag, flag_path.environment, key)
    _check_approved(flag_path, "deleteFeatureEnvSafeguard", {"safeguardId": key}, caller)
    before = safeguard_document(safeguard)
    safeguard.delete()
    record_at(flag_path, EventType.SAFEGUARD_DELETED, caller, subject=str(safeguard), before=before)


def _check_approved(flag_path: FlagPath, action: str, payload: Any, caller: Caller) -> None:
    """The gate sees no changed result yet. Raises NeedsChangeRequest. Skipping it is recorded."""
    record_skip(flag_path, caller)
    if not is_let_through(flag_path, caller):
        effect = f"Safeguards turn {flag_path.feature} off by themselves."
        changes = [ProposedChange(flag_path.feature, action, payload)]
        gated = Gated(flag_path.project, flag_path.environment, [flag_path.feature], changes, effect=effect)
        raise NeedsChangeRequest(gated)


UPDATE_CHARTS = Permission.UPDATE_FEATURE
Owner = tuple[str, str]
"""The project and name of a flag."""


@transactional
def set_chart(owner: Owner | None, values: Mapping[str, Any], *, caller: Caller) -> MetricChart:
    """Adds a chart, or changes the one with the id. Raises NotFound, NoAccess, ValidationError."""
    flag = _access(owner, caller)
    if key := values.get("id"):
        chart = find_chart(flag, key)
        before = chart_document(chart)
    else:
        if read_charts(flag).count() >= MAX_CHARTS:
            raise ValidationError(f"There are {MAX_CHARTS} charts, the most there can be. Remove one first.")
        chart, before = MetricChart(flag=flag), None
    chart.title, chart.metric, chart.y_axis = values["title"], values["metricName"], values["yAxisMin"]
    chart.aggregation, chart.time_range = values["aggregationMode"], values["timeRange"]
    chart.labels = values["labelSelectors"]
    chart.save()
    _record_chart(EventType.METRIC_CHART_CHANGED, chart, caller, before=before, after=chart_document(chart))
    return chart


@transactional
def remove_chart(owner: Owner | None, key: str, *, caller: Caller) -> None:
    """Raises NotFound, NoAccess."""
    chart = find_chart(_access(owner, caller), key)
    before = chart_document(chart)
    chart.delete()
    _record_chart(EventType.METRIC_CHART_DELETED, chart, caller, before=before)


def _access(owner: Owner | None, caller: Caller) -> Flag | None:
    if owner is None:
        caller.check(Permission.ADMIN)
        return None
    return access_flag_for_update(caller, *owner, UPDATE_CHARTS)


def _record_chart(
    kind: EventType, chart: MetricChart, caller: Caller, *, before: Any = None, after: Any = None
) -> None:
    flag = chart.flag
    event = Event(
        type=kind,
        project=flag.project_id if flag else None,
        feature=flag.name if flag else None,
        subject=str(chart),
        before=before,
        after=after,
    )
    record(event, actor=caller)
