"""The demo's integration, switched off after some deliveries, and its monitoring source, which has sent a signal.

Nothing is sent: the receiver would be on this machine, where nothing listens.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from flagadmin.core.audit.models import AuditEvent
from flagadmin.demo.clock import at
from groups.access import Caller
from groups.models import User
from integrations.addons.actions import create_integration
from integrations.messages.message import make_event_document
from integrations.models import Delivery, Integration, Signal, SignalSource
from integrations.providers import MASK
from integrations.signals.actions import create_source, save_rule
from integrations.signals.receive import receive_signal
from projects.models import Flag

DAY = timedelta(days=1)
HELD = timedelta(days=60)
"""The age of the integration and of the source."""
PROJECT, ENVIRONMENT = "checkout", "production"
WEBHOOK: dict[str, Any] = {
    "provider": "webhook",
    "description": "Release channel",
    "enabled": False,
    "parameters": {"url": "http://127.0.0.1:9/releases"},
    "events": [
        "feature-environment-enabled",
        "feature-environment-disabled",
        "feature-strategy-add",
        "feature-strategy-update",
    ],
    "projects": [PROJECT],
    "environments": [ENVIRONMENT],
    "tags": [],
    "productionOnly": False,
    "onlyIfUsersChange": False,
}
SENT = 3
"""The number of its latest events. Delivery of the last one failed."""
REFUSED = "Webhook request failed: Connection refused."
MATCH = {"labels.alertname": "CheckoutErrors"}
RULES: list[dict[str, Any]] = [
    {
        "name": "Checkout fails",
        "match": MATCH | {"labels.severity": "critical"},
        "flag": "one-click-pay",
        "then": "turnOff",
    },
    {
        "name": "Checkout is slow",
        "match": MATCH | {"labels.severity": "warning"},
        "flag": "coupon-stacking",
        "then": "note",
    },
]
ALERT: dict[str, Any] = {
    "status": "firing",
    "labels": {"alertname": "CheckoutErrors", "severity": "warning", "service": "checkout"},
    "annotations": {"summary": "2 % of checkouts fail"},
    "fingerprint": "5ef77f1f8a3ecfb8",
}


def add_connections(now: datetime, admin: User) -> None:
    """Adds them once, if there are none."""
    if Integration.objects.exists() or SignalSource.objects.exists():
        return
    caller = Caller(user=admin)
    with at(now - HELD, "demo-connections"):
        integration = create_integration(WEBHOOK, caller=caller)
        source, _ = create_source("prometheus", SignalSource.Kind.ALERTMANAGER, caller=caller)
        for rule in RULES:
            if Flag.objects.active().filter(name=rule["flag"], project=PROJECT).exists():
                scope = {"project": PROJECT, "environment": ENVIRONMENT, "enabled": True}
                save_rule(source.pk, rule | scope, caller=caller)
    Integration.objects.filter(pk=integration.pk).update(created_at=now - HELD)
    SignalSource.objects.filter(pk=source.pk).update(created_at=now - HELD)
    Delivery.objects.bulk_create(_deliveries(integration, now - 2 * DAY))
    _send_alert(source, now - 6 * DAY - timedelta(minutes=3))


def _deliveries(integration: Integration, until: datetime) -> Iterator[Delivery]:
    events = AuditEvent.objects.filter(
        type__in=WEBHOOK["events"], project=PROJECT, environment=ENVIRONMENT, created_at__lt=until
    ).order_by("-created_at", "-id")[:SENT]
    for number, event in enumerate(reversed(events), 1):
        has_failed = number == SENT
        yield Delivery(
            integration=integration,
            event_id=event.pk,
            state=Delivery.State.FAILED if has_failed else Delivery.State.SUCCESS,
            state_details=REFUSED if has_failed else "Webhook request was successful with status code: 200.",
            attempts=14 if has_failed else 1,
            created_at=event.created_at,
            first_sent_at=event.created_at,
            sent_at=event.created_at + (DAY if has_failed else timedelta(seconds=1)),
            milliseconds=3 if has_failed else 40 + number,
            details={"url": MASK, "contentType": "application/json", "body": make_event_document(event, [])},
        )


def _send_alert(source: SignalSource, moment: datetime) -> None:
    body: Mapping[str, Any] = {"alerts": [ALERT | {"startsAt": moment.isoformat()}]}
    with at(moment, "demo-signal"):
        signal = receive_signal(source, body)
    Signal.objects.filter(pk=signal.pk).update(received_at=moment)
