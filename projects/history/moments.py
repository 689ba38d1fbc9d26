"""The events that change what flags answer, and their moments."""

from collections.abc import Collection
from datetime import datetime

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent

TYPES = [
    kind.value
    for kind in (
        E.FEATURE_CREATED, E.FEATURE_DELETED, E.ENVIRONMENT_DELETED, E.SEGMENT_UPDATED, E.SEGMENT_DELETED,
        E.PROJECT_DELETED, E.FEATURE_METADATA_UPDATED, E.FEATURE_STALE_ON, E.FEATURE_STALE_OFF, E.FEATURE_ARCHIVED,
        E.FEATURE_REVIVED, E.FEATURE_PROJECT_CHANGE, E.FEATURE_ENVIRONMENT_ENABLED, E.FEATURE_ENVIRONMENT_DISABLED,
        E.FEATURE_ENVIRONMENT_VARIANTS_UPDATED, E.FEATURE_STRATEGY_ADD, E.FEATURE_STRATEGY_UPDATE,
        E.FEATURE_STRATEGY_REMOVE, E.FEATURE_STRATEGY_ORDER_CHANGED, E.FEATURE_DEPENDENCY_ADDED,
        E.FEATURE_DEPENDENCY_REMOVED, E.FEATURE_IMPORTED, E.IMPORT_UNDONE, E.FEATURE_PROMOTED, E.PROMOTION_UNDONE,
        E.FEATURE_REVERTED,
    )
]  # fmt: skip
"""The types of events that change definitions."""


def find_events(moments: Collection[datetime], names: Collection[str]) -> dict[datetime, int]:
    """The id of the last audit event of each of these moments: of the first flag if it has one, else of another of
    these, or one that names no flag. A change that was made outside flagadmin has none. One query."""
    first, *_ = names
    rows = AuditEvent.objects.filter(created_at__in=list(moments)).order_by()
    found: dict[datetime, tuple[bool, bool, int]] = {}
    for pk, moment, feature in rows.values_list("id", "created_at", "feature").iterator():
        if feature in names or feature is None:
            key = feature == first, feature is not None, pk
            found[moment] = max(found.get(moment, key), key)
    return {moment: pk for moment, (*_, pk) in found.items()}
