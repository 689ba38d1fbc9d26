"""Segments that a flag would use after a revert. A revert does not change them, even if they have changed since."""

from typing import Any

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from projects.flags.revert.plan import RevertPlan, Target, restore_parts
from projects.models import Segment


def find_changed_segments(plan: RevertPlan, target: Target) -> list[str]:
    """The names of those whose conditions are not those of then. Two queries, none without segments."""
    version = restore_parts(plan.before, [planned.part for planned in plan.parts])
    used = {
        segment
        for state in version["environments"]
        for strategy in state["strategies"]
        for segment in strategy["segments"]
    }
    if not used:
        return []
    kind = EventType.SEGMENT_UPDATED.value
    changes = AuditEvent.objects.filter(type=kind, before__id__in=sorted(used)).order_by("id")
    then: dict[int, Any] = {}
    for key, constraints in target.events_since(changes).values_list("before__id", "before__constraints"):
        then.setdefault(key, constraints)
    now = Segment.objects.filter(pk__in=then).order_by("name")
    return [segment.name for segment in now if segment.constraints != then[segment.pk]]
