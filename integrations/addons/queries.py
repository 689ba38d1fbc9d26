"""Reads integrations and their deliveries, and makes their documents. Documents contain no secrets."""

from django.db.models import Exists, Max, OuterRef, QuerySet

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from groups.access import Caller
from integrations.messages.message import make_event_document
from integrations.models import Delivery, Integration, SecretKeyChanged
from integrations.providers import MASK, PROVIDERS


def find_readable(caller: Caller) -> QuerySet[Integration]:
    """The integrations, except those limited to projects that the caller may not read."""
    if caller.reads_all_projects:
        return Integration.objects.all()
    if caller.reads_installation:
        return Integration.objects.exclude(projects__overlap=list(caller.rights.hidden))
    return Integration.objects.filter(projects__contained_by=[*caller.rights.projects, "*"])


def find_integration(caller: Caller, integration_id: int) -> Integration:
    """Raises NotFound."""
    return get_or_404(find_readable(caller), "Could not find addon", pk=integration_id)


def list_integrations(caller: Caller) -> QuerySet[Integration]:
    return find_readable(caller).annotate(last_sent=Max("deliveries__sent_at"))


def find_readable_deliveries(caller: Caller, integration_id: int) -> QuerySet[Delivery]:
    """Finds the deliveries, newest first, except those of events in projects that have become private since."""
    deliveries = Delivery.objects.filter(integration=integration_id)
    if not (hidden := caller.rights.hidden):
        return deliveries
    return deliveries.exclude(Exists(AuditEvent.objects.filter(pk=OuterRef("event_id"), project__in=hidden)))


def find_attempted_deliveries(caller: Caller, integration_id: int) -> QuerySet[Delivery]:
    """Finds those that were sent at least once."""
    return find_readable_deliveries(caller, integration_id).filter(sent_at__isnull=False)


def annotate_events(deliveries: list[Delivery]) -> list[tuple[Delivery, AuditEvent | None]]:
    ids = [delivery.event_id for delivery in deliveries if delivery.event_id is not None]
    events = AuditEvent.objects.in_bulk(ids)
    return [(delivery, events.get(delivery.event_id or 0)) for delivery in deliveries]


def name_of(integration: Integration) -> str:
    """``Webhook 3``, also the subject of its audit events."""
    return f"{PROVIDERS[integration.provider].display_name} {integration.pk}"


def make_integration_document(integration: Integration) -> Document:
    return {
        "id": integration.pk,
        "provider": integration.provider,
        "enabled": integration.enabled,
        "description": integration.description,
        "parameters": integration.parameters | dict.fromkeys(list_secret_names(integration), MASK),
        "events": integration.events,
        "projects": integration.projects,
        "environments": integration.environments,
        "tags": integration.tags,
        "productionOnly": integration.production_only,
        "onlyIfUsersChange": integration.only_if_users_change,
        "createdAt": iso(integration.created_at),
        **{
            f"deleted{column.capitalize()}": sorted(names)
            for column, names in integration.ended.items()
            if names
        },
    }


def list_secret_names(integration: Integration) -> list[str]:
    """The sensitive parameters that are set; all required ones if the secrets cannot be read."""
    try:
        return sorted(name for name, value in integration.secrets()["parameters"].items() if value)
    except SecretKeyChanged:
        return sorted(PROVIDERS[integration.provider].sensitive)


def make_delivery_document(delivery: Delivery, event: AuditEvent | None) -> Document:
    is_waiting = delivery.state == Delivery.State.PENDING
    return {
        "id": str(delivery.pk),
        "integrationId": delivery.integration_id,
        "createdAt": iso(delivery.sent_at or delivery.created_at),
        "state": Delivery.State.FAILED if is_waiting else delivery.state,
        "stateDetails": f"{delivery.state_details} It will be sent again."
        if is_waiting
        else delivery.state_details,
        "event": make_event_document(event, []) if event else {"id": 0, "type": "integration-test"},
        "details": delivery.details or {},
    }
