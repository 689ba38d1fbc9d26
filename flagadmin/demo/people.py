"""The demo's users, groups and applications.

The demo's integration, switched off after some deliveries, and its monitoring source, which has sent a
signal.

Nothing is sent: the receiver would be on this machine, where nothing listens.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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

ADMIN = "demo"

ACCOUNTS: list[dict[str, Any]] = [
    {"username": ADMIN, "name": "Demo admin", "root_role": "Admin"},
    {"username": "maria", "name": "Maria Olsen", "root_role": "Editor"},
    {"username": "ken", "name": "Ken Adams", "root_role": "Viewer"},
    {"username": "aisha", "name": "Aisha Khan", "root_role": None},
    {"username": "lukas", "name": "Lukas Weber", "root_role": None},
    {"username": "noor", "name": "Noor Haddad", "root_role": None},
    {"username": "ci-pipeline", "name": "CI pipeline", "root_role": "Editor", "is_service": True},
]


@dataclass(frozen=True, slots=True)
class DemoGroup:
    """A group with its grants, as (role, project)."""

    name: str
    description: str
    members: tuple[str, ...]
    grants: tuple[tuple[str, str], ...]


GROUPS = [
    DemoGroup("Checkout team", "Owns the checkout.", ("aisha", "lukas"), (("Owner", "checkout"),)),
    DemoGroup("Storefront team", "Owns the storefront.", ("maria", "aisha"), (("Member", "storefront"),)),
    DemoGroup(
        "Former contractors",
        "Built the old portal.",
        ("lukas", "noor", "ken"),
        (("Member", "legacy-portal"),),
    ),
]

REVIEWERS = "Reviewer", "Approves changes of production.", "checkout", ("aisha", "maria")
"""A role that may approve change requests, its project, and the people who hold it there."""

OWNERS = [
    ("checkout", "checkout-redesign", "group", "Checkout team"),
    ("checkout", "one-click-pay", "group", "Checkout team"),
    ("platform", "api-rate-limits", "user", "lukas"),
    ("storefront", "search-v2", "group", "Storefront team"),
    ("storefront", "dark-theme", "user", "maria"),
    ("default", "maintenance-banner", "user", ADMIN),
]
"""Owners of flags: project, flag, kind and name of the owner."""


@dataclass(frozen=True, slots=True)
class DemoUsage:
    application: str
    environment: str
    sdk: str
    flags: tuple[str, ...]
    instances: int = 2
    minutes_ago: int = 3


WEB = ("search-v2", "dark-theme", "one-click-pay", "checkout-redesign", "recommendations", "returns-portal")
APP = ("apple-pay", "one-click-pay", "gift-cards", "buy-now-button")

USAGE = [
    DemoUsage(
        "web-shop", "production", "unleash-node-sdk:6.12.1", (*WEB, "buy-now-button", "gift-cards"), 6, 1
    ),
    DemoUsage("web-shop", "production", "unleash-node-sdk:6.11.0", (), 2, 2),
    DemoUsage("web-shop", "development", "unleash-node-sdk:6.11.0", WEB, 1, 70),
    DemoUsage("ios-app", "production", "unleash-ios-sdk:2.3.0", APP, 5, 9),
    DemoUsage("ios-app", "production", "unleash-ios-sdk:2.1.4", APP, 2, 9),
    DemoUsage("ios-app", "development", "unleash-ios-sdk:2.4.0-beta.1", APP, 1, 200),
    DemoUsage(
        "search-api",
        "production",
        "unleash-python-sdk:6.9.1",
        ("search-v2", "recommendations", "size-guide"),
        6,
        1,
    ),
    DemoUsage("search-api", "production", "unleash-python-sdk:6.2.0", ("search-v2",), 1, 600),
    DemoUsage(
        "job-runner",
        "production",
        "unleash-go-sdk:5.1.0",
        ("new-scheduler", "api-rate-limits", "request-tracing", "read-replica", "batch-exports"),
        3,
        2,
    ),
    DemoUsage("job-runner", "production", "unleash-go-sdk:3.9.0", ("batch-exports",), 1, 15),
    DemoUsage(
        "job-runner", "development", "unleash-go-sdk:5.1.0", ("new-scheduler", "api-rate-limits"), 1, 45
    ),
    DemoUsage(
        "portal-web", "production", "unleash-java-sdk:10.2.2", ("portal-read-only", "portal-banner"), 1, 3
    ),
]

FAVORITE_FLAGS = ("checkout-redesign", "one-click-pay", "search-v2", "maintenance-banner")
FAVORITE_PROJECT = "checkout"


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
