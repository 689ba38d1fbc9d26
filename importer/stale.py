"""What has changed since a plan was made, in a sentence."""

from collections.abc import Iterable
from datetime import datetime

from flagadmin.audit.models import AuditEvent
from importer.plan import Plan


def changed_since(plan: Plan, made_at: datetime) -> str:
    """``one-click-pay was changed at 10:14 after this check. Check again.``"""
    found = last_change(plan.flags, made_at)
    if found is None:
        return f"Something in {plan.body.project} that this import needs was changed after this check. Check again."
    return f"{found.feature} was changed at {found.created_at:%H:%M} after this check. Check again."


def last_change(flags: Iterable[str], since: datetime) -> AuditEvent | None:
    events = AuditEvent.objects.filter(feature__in=list(flags), created_at__gt=since)
    return events.order_by("-id").first()
