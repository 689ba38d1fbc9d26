"""Sources of signals and rules, as tests need them."""

from typing import Any

from groups.tokens import hash_secret
from integrations.models import SignalRule, SignalSource

TOKEN = "signal_of_the_tests"
MATCH = {"labels.alertname": "CheckoutErrors"}


def make_source(name: str = "monitoring", kind: str = "alertmanager") -> SignalSource:
    return SignalSource.objects.create(name=name, kind=kind, token_hash=hash_secret(TOKEN))


def make_rule(source: SignalSource, **fields: Any) -> SignalRule:
    """It turns the flag cart off in production."""
    values = {"name": "Checkout fails", "match": MATCH, "then": "turnOff", "enabled": True}
    place = {"project": "shop", "flag": "cart", "environment": "production"}
    return SignalRule.objects.create(source=source, **values | place | fields)


def make_alert(**fields: Any) -> dict[str, Any]:
    labels = {"alertname": "CheckoutErrors", "severity": "critical"} | fields.pop("labels", {})
    annotations = {"summary": "5 % of checkouts fail"}
    alert = {"status": "firing", "labels": labels, "annotations": annotations}
    return alert | {"startsAt": "2026-11-25T10:00:00Z", "fingerprint": "c0ffee"} | fields


def make_body(*alerts: dict[str, Any]) -> dict[str, Any]:
    """As Alertmanager sends it."""
    return {"version": "4", "status": "firing", "receiver": "flagadmin", "alerts": list(alerts)}
