"""What has changed since a plan was made, in words."""

from collections.abc import Iterable
from datetime import datetime

from flagadmin.audit.models import AuditEvent
from flagadmin.errors import Conflict
from importer.models import FlagReport
from importer.plan.build import Plan

MOST_TOLD = 20


class Outdated(Conflict):
    """409: what would be imported now is not what was seen."""


def changed_since(plan: Plan, made_at: datetime) -> str:
    """``one-click-pay was changed at 10:14 after this check.``"""
    found = last_change(plan.flags, made_at)
    if found is None:
        return f"Something in {plan.body.project} that this import needs was changed after this check."
    return f"{found.feature} was changed at {found.created_at:%H:%M} after this check."


def last_change(flags: Iterable[str], since: datetime) -> AuditEvent | None:
    events = AuditEvent.objects.filter(feature__in=list(flags), created_at__gt=since)
    return events.order_by("-id").first()


def told_changes(before: dict[str, FlagReport], after: dict[str, FlagReport]) -> list[str]:
    """What one preview says otherwise than an earlier one, flag by flag, and how many more there are."""
    lines = []
    for name, now in after.items():
        then = before.get(name)
        if then is None:
            lines.append(f"{name} is included again.")
        elif then.action != now.action:
            lines.append(f"{name}: {then.action} → {now.action}.")
        elif then.document() != now.document():
            lines.append(f"{name} is changed in another way.")
    more = len(lines) - MOST_TOLD
    return [*lines[:MOST_TOLD], f"{more} more flags."] if more > 0 else lines
