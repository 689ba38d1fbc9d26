"""A new token of a source fires no rule with somebody else's rights, and a dead kill switch is not silent."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from flagadmin.core.audit.models import AuditEvent
from integrations.models import SignalRule, SignalSource
from projects.flags.actions import NewFlag, create_flag
from projects.flags.environments.actions import enable_flag
from projects.models import FlagEnvironment
from tests.support.page_text import page_text
from tests.support.signals import make_alert, make_body, make_rule, make_source

pytestmark = pytest.mark.django_db
SIGNALS = "/api/admin/signals"
REFUSED = "has replaced the token of this source. Its author or an admin must save the rule again."


@pytest.fixture
def source(shop: Any, callers: Any, people: Any) -> SignalSource:
    create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    enable_flag("shop", "cart", "production", caller=callers("admin"))
    source = make_source()
    make_rule(source, author=people["admin"])
    return source


def replace(api: Any, source: SignalSource, who: str = "editor") -> dict[str, Any]:
    answer = api[who].post(f"{SIGNALS}/{source.pk}/token")
    assert answer.status_code == 201, answer.content
    made: dict[str, Any] = answer.json()
    return made


def fire(token: str) -> dict[str, Any]:
    answer = APIClient().post("/api/signals/monitoring", make_body(make_alert()), HTTP_AUTHORIZATION=token)
    assert answer.status_code == 202, answer.content
    [result] = answer.json()["results"]
    return dict(result)


def is_on() -> bool:
    return FlagEnvironment.objects.get(flag__name="cart", environment="production").enabled


def save(api: Any, source: SignalSource, who: str) -> None:
    [rule] = api[who].get(f"{SIGNALS}/{source.pk}").json()["rules"]
    body = {name: value for name, value in rule.items() if name not in ("id", "suspended")}
    answer = api[who].put(f"{SIGNALS}/{source.pk}/rules/{rule['id']}", body)
    assert answer.status_code == 200, answer.content
    assert answer.json()["suspended"] is None


def test_an_editor_does_not_fire_an_admins_rule(api, source):
    made = replace(api, source)
    assert made["suspendedRules"] == ["Checkout fails"]
    result = fire(made["token"])
    assert (result["result"], is_on()) == ("refused", True)
    assert result["why"].endswith(REFUSED)
    [rule] = api["admin"].get(f"{SIGNALS}/{source.pk}").json()["rules"]
    assert rule["suspended"]["by"]
    of_rule, of_token = AuditEvent.objects.filter(type="signal-source-updated").order_by("id")
    told = {"name": "Checkout fails", "project": "shop", "suspended": rule["suspended"]}
    assert (of_rule.project, of_rule.after) == ("shop", told)
    assert (of_token.project, of_token.after) == (None, {"token": "replaced"})


def test_saved_again_it_acts(api, source):
    made = replace(api, source)
    save(api, source, "admin")
    assert (fire(made["token"])["result"], is_on()) == ("turnedOff", False)


def test_a_second_replacement_keeps_who_suspended_first(api, source):
    replace(api, source)
    before = SignalRule.objects.get().suspended_at
    assert replace(api, source)["suspendedRules"] == []
    assert SignalRule.objects.get().suspended_at == before


def test_own_rules_and_tokens_of_admins_suspend_nothing(api, source, people):
    SignalRule.objects.update(author=people["editor"])
    assert replace(api, source)["suspendedRules"] == []
    assert replace(api, source, "admin")["suspendedRules"] == []


def test_rules_without_an_author_are_suspended_too(api, source):
    SignalRule.objects.update(author=None)
    assert replace(api, source)["suspendedRules"] == ["Checkout fails"]


def test_pages_say_so_before_and_after(api, browse, source):
    page = f"/signals/{source.pk}/"
    assert "A new token suspends rules" in page_text(browse("editor").get(f"{page}token"))
    replace(api, source)
    for who, address in (("editor", page), ("admin", page), ("admin", "/"), ("editor", "/")):
        assert "does nothing" in page_text(browse(who).get(address)), (who, address)
    assert "does nothing" not in page_text(browse("viewer").get("/"))
    save(api, source, "admin")
    assert "does nothing" not in page_text(browse("admin").get("/"))
