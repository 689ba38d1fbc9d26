"""/signals/: a source, its token once, a rule, its trial, and what arrived."""

import json
import re

import pytest

from integrations.models import SignalRule, SignalSource
from integrations.signals.receive import receive_signal
from projects.flags.actions import NewFlag, create_flag
from tests.support.page_text import page_text
from tests.support.signals import make_alert, make_body, make_rule, make_source

pytestmark = pytest.mark.django_db


def test_from_nothing_to_a_rule(browse, shop, callers):
    create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    admin = browse("admin")
    assert "No sources yet." in page_text(admin.get("/signals/"))
    created = admin.post("/signals/new/", {"name": "prometheus", "kind": "alertmanager"}, follow=True)
    assert re.search(r"signal_[\w-]{43}", created.text)
    assert "/api/signals/prometheus" in created.text
    page = f"/signals/{SignalSource.objects.get().pk}/"
    form = {
        "name": "Checkout fails",
        "match": "labels.alertname = CheckoutErrors\n\n labels.severity= *",
        "project": "shop",
        "flag": "cart",
        "environment": "production",
        "then": "turnOff",
    }
    saved = admin.post(f"{page}rules/new/", form)
    rule = SignalRule.objects.get()
    assert saved.url == f"{page}rules/{rule.pk}/try"
    assert rule.match == {"labels.alertname": "CheckoutErrors", "labels.severity": "*"}
    tried = admin.post(saved.url, {"example": json.dumps(make_body(make_alert()))})
    assert "Matches" in page_text(tried)
    assert "it would turn off cart in production" in page_text(tried)
    assert "labels.severity = *" in admin.get(f"{page}rules/{rule.pk}/").text
    admin.post(f"{page}rules/{rule.pk}/", form | {"enabled": "on"})
    assert receive_signal(rule.source, make_body(make_alert())).results[0]["result"] == "wasOff"
    assert "Checkout fails: cart in production, was off" in page_text(admin.get(page))
    assert re.search(r"signal_[\w-]{43}", admin.post(f"{page}token", follow=True).text)
    admin.post(f"{page}rules/{rule.pk}/delete")
    admin.post(f"{page}delete")
    assert not SignalSource.objects.exists()


@pytest.mark.parametrize(
    ("example", "says"),
    [("{", "Invalid JSON"), ("[]", "must be a JSON object"), ("{}", "alerts must be a list")],
)
def test_examples_that_are_refused(browse, people, example, says):
    rule = make_rule(make_source(), author=people["admin"])
    refused = browse("admin").post(f"/signals/{rule.source_id}/rules/{rule.pk}/try", {"example": example})
    assert refused.status_code == 400
    assert says in page_text(refused)


def test_forms_show_problems(browse, shop):
    admin, source = browse("admin"), make_source()
    assert "lower-case letters" in page_text(admin.post("/signals/new/", {"name": "A B", "kind": "generic"}))
    form = {
        "name": "x",
        "match": "nothing",
        "project": "shop",
        "flag": "gone",
        "environment": "x",
        "then": "note",
    }
    assert "Each line must be a path" in page_text(admin.post(f"/signals/{source.pk}/rules/new/", form))
    assert "gone" in page_text(admin.post(f"/signals/{source.pk}/rules/new/", form | {"match": "a = b"}))


def test_who_may(browse):
    source = make_source()
    for page in ("", "new/", f"{source.pk}/token", f"{source.pk}/rules/new/"):
        assert browse("viewer").get(f"/signals/{page}").status_code == 403
    assert browse("viewer").get(f"/signals/{source.pk}/").status_code == 404
    assert browse("admin").get("/signals/99999/").status_code == 404
