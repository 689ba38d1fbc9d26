"""Sets the expected lifetime of a flag type."""

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import NotFound
from groups.access import Caller
from groups.permissions import Permission
from projects.models import FlagType


@transactional
def set_lifetime(type_id: str, days: int | None, *, caller: Caller) -> FlagType:
    """Sets the expected lifetime in days; None means unlimited. Raises NoAccess, NotFound."""
    caller.check(Permission.ADMIN)
    flag_type = FlagType.objects.select_for_update().filter(pk=type_id).first()
    if flag_type is None:
        raise NotFound(f"Flag type {type_id} not found.")
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
