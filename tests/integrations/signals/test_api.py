"""/api/admin/signals: sources, their tokens, rules, and trials."""

import json

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.tokens import hash_secret
from integrations.models import SignalRule, SignalSource
from projects.flags.actions import NewFlag, create_flag
from projects.models import FlagEnvironment
from tests.support.signals import make_alert, make_body, make_rule, make_source

pytestmark = pytest.mark.django_db
SIGNALS = "/api/admin/signals"
RULE = {
    "name": "Checkout fails",
    "match": {"labels.alertname": "CheckoutErrors"},
    "project": "shop",
    "flag": "cart",
    "environment": "production",
    "then": "turnOff",
}


@pytest.fixture
def cart(shop, callers):
    return create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))


def call(client, method, path, body=None, status=200):
    answer = getattr(client, method)(f"{SIGNALS}{path}", body)
    assert answer.status_code == status, answer.content
    return answer.json() if answer.content else None


def test_from_a_source_to_a_rule_that_is_on(api, cart, people):
    admin = api["admin"]
    created = call(admin, "post", "", {"name": "prometheus", "kind": "alertmanager"}, 201)
    assert SignalSource.objects.get().token_hash == hash_secret(created["token"])
    one = f"/{created['id']}"
    assert "token" not in call(admin, "get", one)
    rule = call(admin, "post", f"{one}/rules", RULE, 201)
    assert not rule["enabled"]
    tried = call(
        admin,
        "post",
        f"{one}/rules/{rule['id']}/try",
        make_body(make_alert(), make_alert(labels={"alertname": "B"})),
    )
    assert [(item["item"], item["meets"]) for item in tried["items"]] == [(1, True), (2, False)]
    call(admin, "put", f"{one}/rules/{rule['id']}", RULE | {"enabled": True})
    assert SignalRule.objects.get().author == people["admin"]
    assert call(admin, "get", "")["sources"][0]["rules"][0]["enabled"]
    assert call(admin, "get", f"{one}/received") == {"signals": []}
    replaced = call(admin, "post", f"{one}/token", status=201)["token"]
    assert SignalSource.objects.get().token_hash == hash_secret(replaced)
    call(admin, "delete", f"{one}/rules/{rule['id']}")
    call(admin, "delete", one)
    events = list(AuditEvent.objects.filter(type__startswith="signal-").order_by("id"))
    assert [event.type.removeprefix("signal-source-") for event in events] == [
        "created",
        *["updated"] * 4,
        "deleted",
    ]
    assert created["token"] not in json.dumps([[event.before, event.after] for event in events])


def test_what_somebody_else_has_changed_is_not_overwritten(api, cart, people):
    source = make_source()
    path = f"{SIGNALS}/{source.pk}/rules/{make_rule(source, author=people['admin']).pk}"
    admin = api["admin"]
    rule, whole = admin.get(path), admin.get(f"{SIGNALS}/{source.pk}")
    assert (rule.status_code, rule.json()["flag"]) == (200, "cart")
    assert admin.get(path, headers={"If-None-Match": rule["ETag"]}).status_code == 304
    changed = RULE | {"name": "Renamed"}
    assert admin.put(path, changed, headers={"If-Match": rule["ETag"]}).status_code == 200
    refused = admin.put(path, RULE, headers={"If-Match": rule["ETag"]})
    assert (refused.status_code, refused.json()["current"]["name"]) == (412, "Renamed")
    for address, tag in ((path, rule["ETag"]), (f"{SIGNALS}/{source.pk}", whole["ETag"])):
        assert admin.delete(address, headers={"If-Match": tag}).status_code == 412
    assert SignalRule.objects.get().name == "Renamed"
    assert admin.delete(path, headers={"If-Match": refused["ETag"]}).status_code == 200


def test_trying_changes_nothing(api, cart, people):
    rule = make_rule(make_source(), author=people["admin"])
    events = AuditEvent.objects.count()
    call(api["admin"], "post", f"/{rule.source_id}/rules/{rule.pk}/try", make_body(make_alert()))
    assert AuditEvent.objects.count() == events
    assert not FlagEnvironment.objects.filter(flag=cart, enabled=True).exists()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"match": {}}, "must have 1 to 10 conditions"),
        ({"match": {str(number): "x" for number in range(11)}}, "must have 1 to 10 conditions"),
        ({"match": {"": "x"}}, "needs a path and a value"),
        ({"flag": "nothing"}, "nothing"),
        ({"project": "nowhere"}, "nowhere"),
        ({"environment": "nowhere"}, "must be development or production"),
        ({"then": "explode"}, "must be note, pausePlan or turnOff"),
        ({"name": "taken"}, "there is a rule taken already"),
    ],
)
def test_rules_that_are_refused(api, cart, people, changes, says):
    source = make_source()
    make_rule(source, name="taken", author=people["admin"])
    assert says in json.dumps(call(api["admin"], "post", f"/{source.pk}/rules", RULE | changes, 400))


@pytest.mark.parametrize("name", ["Upper", "with space", "", "a/b", "monitoring"])
def test_sources_that_are_refused(api, name):
    make_source()
    call(api["admin"], "post", "", {"name": name, "kind": "generic"}, 400)


def test_who_may(api, cart, people):
    source = make_source()
    call(api["viewer"], "get", "", status=403)
    call(api["editor"], "get", f"/{source.pk}")
    call(api["editor"], "post", "/99999/rules", RULE, 404)
    refused = call(api["editor"], "post", f"/{source.pk}/rules", RULE, 403)
    assert refused["permissions"] == ["UPDATE_FEATURE_ENVIRONMENT"]


def test_a_rule_needs_a_person(api, cart):
    refused = call(api["admin_token"], "post", f"/{make_source().pk}/rules", RULE, 400)
    assert "rights of a person" in json.dumps(refused)
