"""Reads the audit log in the order of commits, and makes a delivery of each event for each integration that wants it.

Changes pay nothing for it. Ids are given before commits, so that an event with a lower id than the last one read may
still appear. Of the transactions that were running when an id was noted (the mark), the last must have ended before all
events up to it are there; until then they are read again, and those that have a delivery are left out. Each transaction
has its own id before its events have theirs (a trigger of the audit log), so none of them is missed.
"""

from django.db import transaction

from flagadmin.core.db.statements import fetch_row
from integrations.models import Relay

_LAST_ID = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM audit_auditevent_id_seq"

# One statement, so that the transactions are those whose events it sees.
_DELIVER = """
WITH made AS (
  INSERT INTO integrations_delivery (integration_id, event_id)
  SELECT integration.id, event.id
  FROM audit_auditevent event
  JOIN integrations_integration integration ON integration.enabled
    AND event.type = ANY(integration.events)
    AND event.created_at >= integration.created_at
    AND (cardinality(integration.projects) = 0 OR '*' = ANY(integration.projects)
         OR event.project = ANY(integration.projects))
    AND (cardinality(integration.environments) = 0 OR '*' = ANY(integration.environments)
         OR event.environment IS NULL OR event.environment = ANY(integration.environments))
    AND (NOT integration.production_only OR event.environment IS NULL
         OR EXISTS (SELECT FROM projects_environment WHERE name = event.environment AND type = 'production'))
    AND (cardinality(integration.tags) = 0 OR EXISTS (
         SELECT FROM projects_flagtag tag JOIN projects_flag flag ON flag.id = tag.flag_id
         WHERE flag.name = event.feature AND tag.tag_type_id || ':' || tag.value = ANY(integration.tags))
         OR event.type = 'feature-deleted' AND EXISTS (
         SELECT FROM jsonb_path_query(event.before, '$.tags[*]') tag
         WHERE (tag ->> 'type') || ':' || (tag ->> 'value') = ANY(integration.tags)))
  WHERE event.id > %s AND NOT EXISTS (
    SELECT FROM integrations_delivery delivery
    WHERE delivery.integration_id = integration.id AND delivery.event_id = event.id
  )
  ORDER BY event.created_at, event.id
  RETURNING 1
)
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
       (SELECT count(*) FROM made)
"""


def read_settled_id() -> int:
    """No event with this id or a lower one can appear any more."""
    position = Relay.objects.first()
    return position.settled_id if position else 0


@transaction.atomic
def relay() -> int:
    """Returns the number of new deliveries. 0 if another server is at it."""
    position = Relay.objects.select_for_update(skip_locked=True).first()
    if position is None:
        if not Relay.objects.exists():
            Relay.objects.create(pk=1, settled_id=0, mark_id=0, mark_xid=0)
        return 0
    (last_id,) = fetch_row(_LAST_ID)
    if last_id == position.settled_id:
        return 0
    oldest_running, next_xid, made = fetch_row(_DELIVER, [position.settled_id])
    settle(position, last_id, oldest_running, next_xid)
    position.save()
    return made


def settle(position: Relay, last_id: int, oldest_running: int, next_xid: int) -> None:
    """Moves the position to where no event can appear before it. Any transaction of the whole server delays it."""
    is_restored = next_xid < position.mark_xid  # into another server, whose transactions are numbered anew
    if position.mark_id > position.settled_id and not is_restored and oldest_running >= position.mark_xid:
        position.settled_id = position.mark_id
    if position.mark_id <= position.settled_id or is_restored:
        position.mark_id, position.mark_xid = last_id, next_xid
