"""Sets the expected lifetime of a flag type."""

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from groups.access import Caller, Permission
from projects.models import FlagType


@transactional
def set_lifetime(type_id: str, days: int | None, *, caller: Caller) -> FlagType:
    """Sets the expected lifetime in days; None means unlimited. Raises NoAccess, NotFound."""
    caller.check(Permission.ADMIN)
    flag_type = get_or_404(
        FlagType.objects.select_for_update(), f"Flag type {type_id} not found.", pk=type_id
    )
    before, flag_type.lifetime_days = flag_type.lifetime_days, days
    if before != days:
        flag_type.save(update_fields=["lifetime_days"])
        record(
            Event(
                type=EventType.FEATURE_TYPE_UPDATED,
                subject=type_id,
                before={"lifetimeDays": before},
                after={"lifetimeDays": days},
            ),
            actor=caller,
        )
    return flag_type
