"""The JSON documents of integrations and deliveries, in the reference's format. They contain no secrets."""

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.document import Document
from flagadmin.core.http.timestamps import iso
from integrations.messages.message import make_event_document
from integrations.models import Delivery, Integration, SecretKeyChanged
from integrations.providers import MASK, PROVIDERS


def name_of(integration: Integration) -> str:
    """``Webhook 3``: also the subject of its audit events."""
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
    }


def list_secret_names(integration: Integration) -> list[str]:
    """The sensitive parameters that are set; all required ones if they cannot be read."""
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
