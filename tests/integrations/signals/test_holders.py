"""An alert does no more than the person who got the token of its source may do themselves."""

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from rest_framework.test import APIClient

from groups.models import User
from integrations.models import SignalSource
from projects.models import ProjectEnvironment
from releases.models import Safeguard
from tests.support.page_text import page_text
from tests.support.plans import cart, started

pytestmark = pytest.mark.django_db(transaction=True)
SIGNALS = "/api/admin/signals"
DEAF = "Safeguard HighErrors of cart hears no alert"


@pytest.fixture
def safeguard(shop: Any) -> Safeguard:
    cart(5)
    return Safeguard.objects.create(
        plan=started(5, 50), source="alert", metric="HighErrors", action="turnOff"
    )


def make_source(by: Any) -> str:
    body = {"name": "monitoring", "kind": "alertmanager"}
    token: str = by.post(SIGNALS, body).json()["token"]
    return token


def is_told(token: str, status: str = "firing") -> bool:
    alert = {"status": status, "labels": {"alertname": "HighErrors"}, "fingerprint": "1"}
    answer = APIClient().post("/api/signals/monitoring", {"alerts": [alert]}, HTTP_AUTHORIZATION=token)
    assert answer.status_code == 202, answer.content
    return (Safeguard.objects.get().firing_since is not None) == (status == "firing")


def test_an_editor_elsewhere_neither_breaches_nor_mends_it(api, safeguard):
    token = make_source(api["editor"])
    assert not is_told(token)
    [source] = api["editor"].get(SIGNALS).json()["sources"]
    admins = api["admin"].post(f"{SIGNALS}/{source['id']}/token").json()["token"]
    assert is_told(admins)
    again = api["editor"].post(f"{SIGNALS}/{source['id']}/token").json()["token"]
    assert not is_told(again, "resolved")


def test_a_source_of_an_admin_is_heard_until_they_are_gone(api, people, safeguard):
    token = make_source(api["admin"])
    assert is_told(token)
    assert is_told(token, "resolved")
    User.objects.filter(pk=people["admin"].pk).update(is_active=False)
    assert not is_told(token)
    SignalSource.objects.update(token_by=None)  # as when the account is deleted
    assert not is_told(token)


def forget() -> None:
    """As before the upgrade, which then looks into the audit log."""
    SignalSource.objects.update(token_by=None, token_by_name="")
    import_module("integrations.migrations.0010_trace_tokens").trace_tokens(apps, None)


@pytest.mark.parametrize(("who", "is_heard"), [("editor", False), ("admin", True), ("admin_token", True)])
def test_the_upgrade_finds_who_got_the_token(api, safeguard, who, is_heard):
    token = make_source(api[who])
    forget()
    assert is_told(token) == is_heard


def test_the_upgrade_trusts_nobody_of_whom_nothing_is_known(api, safeguard):
    token = make_source(api["admin"])
    SignalSource.objects.update(name="other")
    forget()
    SignalSource.objects.update(name="monitoring")
    assert not is_told(token)


def test_the_upgrade_suspends_rules_that_a_replaced_token_could_fire(api, people, safeguard):
    make_source(api["admin"])
    source = SignalSource.objects.get()
    for name in ("before", "mine", "after"):
        if name == "after":
            api["editor"].post(f"{SIGNALS}/{source.pk}/token")
        body = {"name": name, "match": {"labels.alertname": "Kill"}, "then": "turnOff", "enabled": True}
        place = {"project": "shop", "flag": "cart", "environment": "production"}
        answer = api["admin"].post(f"{SIGNALS}/{source.pk}/rules", body | place)
        assert answer.status_code == 201, answer.content
    source.rules.filter(name="mine").update(author=people["editor"])
    source.rules.update(suspended_at=None, suspended_by="")
    forget()
    suspended = dict(source.rules.exclude(suspended_at=None).values_list("name", "suspended_by"))
    assert suspended == {"before": "editor"}


def test_where_requests_are_needed_the_holder_must_be_able_to_skip_them(api, people, safeguard):
    token = make_source(api["admin"])
    SignalSource.objects.update(token_by=people["member"])
    assert is_told(token)
    assert is_told(token, "resolved")
    ProjectEnvironment.objects.filter(environment="production").update(required_approvals=1)
    assert not is_told(token)


def test_pages_say_that_it_is_deaf(api, browse, safeguard):
    assert DEAF in page_text(browse("admin").get("/"))
    make_source(api["editor"])
    source = SignalSource.objects.get()
    assert DEAF in page_text(browse("admin").get("/"))
    page = f"/signals/{source.pk}/"
    assert "No source can tell 1 safeguard of an alert: HighErrors." in page_text(browse("admin").get(page))
    assert "Safeguards hear the alerts of this source only where you" in page_text(
        browse("editor").get(f"{page}token")
    )
    api["admin"].post(f"{SIGNALS}/{source.pk}/token")
    assert DEAF not in page_text(browse("admin").get("/"))
    assert "No source can tell" not in page_text(browse("admin").get(page))
