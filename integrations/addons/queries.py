"""Reads integrations and their deliveries."""

from django.db.models import Max, QuerySet

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.lookups import get_or_404
from groups.access import Caller
from integrations.models import Delivery, Integration


def find_readable(caller: Caller) -> QuerySet[Integration]:
    """Without those that name projects which the caller may not read."""
    allowed = caller.readable_projects
    if allowed is None:
        return Integration.objects.all()
    return Integration.objects.filter(projects__contained_by=[*allowed, "*"])


def find_integration(caller: Caller, integration_id: int) -> Integration:
    """Raises NotFound."""
    return get_or_404(find_readable(caller), "Could not find addon", pk=integration_id)


def list_integrations(caller: Caller) -> QuerySet[Integration]:
    return find_readable(caller).annotate(last_sent=Max("deliveries__sent_at"))


def find_attempted_deliveries(integration_id: int) -> QuerySet[Delivery]:
    """Finds the deliveries that were sent at least once, newest first."""
    return Delivery.objects.filter(integration=integration_id, sent_at__isnull=False)


def annotate_events(deliveries: list[Delivery]) -> list[tuple[Delivery, AuditEvent | None]]:
    ids = [delivery.event_id for delivery in deliveries if delivery.event_id is not None]
    events = AuditEvent.objects.in_bulk(ids)
    return [(delivery, events.get(delivery.event_id or 0)) for delivery in deliveries]
