"""Alertmanager tells safeguards of release plans when an alert fires, and when it is over."""

from typing import Any

import pytest

from releases.models import Safeguard
from releases.plans.due import look_at_due
from tests.support.cast import client
from tests.support.plans import cart, reload, started
from tests.support.signals import TOKEN, make_source

pytestmark = pytest.mark.django_db(transaction=True)


def send(status: str, **labels: str) -> None:
    alert = {"status": status, "labels": {"alertname": "HighErrors", **labels}, "fingerprint": "1"}
    answer = client(TOKEN).post("/api/signals/monitoring", {"alerts": [alert]})
    assert answer.status_code == 202, answer.content


def test_an_alert_pauses_the_plan_whose_safeguard_waits_for_it(shop: Any) -> None:
    make_source()
    cart(5)
    plan = started(5, 50)
    labels = {"severity": ["page"]}
    Safeguard.objects.create(plan=plan, source="alert", metric="HighErrors", labels=labels)
    send("firing", severity="info")
    assert Safeguard.objects.get().firing_since is None
    send("firing", severity="page")
    look_at_due()
    assert (reload(plan).state, reload(plan).reason) == ("paused", "Alert HighErrors fires.")
    send("resolved", severity="page")
    assert Safeguard.objects.get().firing_since is None
