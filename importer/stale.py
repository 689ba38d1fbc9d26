"""What has changed since a plan was made, in a sentence."""

from flagadmin.audit.models import AuditEvent
from importer.plan import Plan


def stale_message(plan: Plan, now: Plan) -> str:
    """``one-click-pay was changed at 10:14 after this check. Check again.``"""
    changed = [
        name
        for name, flag in plan.flags.items()
        if (after := now.flags.get(name)) is None
        or after.before != flag.before
        or after.action != flag.action
    ]
    if not changed:
        return f"Something that this import needs in {plan.body.project} was changed after this check. Check again."
    event = AuditEvent.objects.filter(feature__in=changed[:1000]).order_by("-id").first()
    if event is None:
        return f"{changed[0]} was changed after this check. Check again."
    return f"{event.feature} was changed at {event.created_at:%H:%M} after this check. Check again."
