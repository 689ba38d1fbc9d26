"""An operator is one entry of the table: forms, sentences, the API, messages and evaluation know a new one at once."""

import html

import pytest

from flagadmin.core.audit.models import AuditEvent
from integrations.messages.message import markdown
from playground.engine import operators
from tests.support.flags import make_flag, switch_on

FLAG = "/api/admin/projects/shop/features/cart/environments/development/strategies"
PAGE = "/projects/shop/features/cart/strategies/edit?environmentId=development&strategyId="
CONSTRAINT = {"contextName": "userId", "operator": "STR_EQUALS", "values": ["kim", "lee"]}


@pytest.fixture(autouse=True)
def _equals(monkeypatch):
    monkeypatch.setitem(
        operators.OPERATORS,
        "STR_EQUALS",
        operators.Operator(
            "values", "text", "a string", "that is",
            label="Text: equals", notice="is a string that equals", help="The value is exactly one of these.",
        ),
    )  # fmt: skip
    monkeypatch.setitem(operators.TEXT_TESTS, "EQUALS", lambda texts: lambda value: value in texts)


def ask(api, user):
    body = {"environment": "development", "projects": ["shop"], "context": {"userId": user}}
    [flag] = api["admin"].post("/api/admin/playground", body, format="json").json()["features"]
    return flag["isEnabled"], flag["reason"]


def test_a_new_operator_is_known_everywhere(api, browse, shop):
    flag = make_flag("cart")
    strategy = {
        "name": "flexibleRollout",
        "parameters": {"rollout": "100"},
        "constraints": [{**CONSTRAINT, "values": ["kim"]}],
    }
    added = api["member"].post(FLAG, strategy, format="json")
    assert added.status_code == 200, added.content
    strategy["constraints"] = [CONSTRAINT]
    changed = api["member"].put(f"{FLAG}/{added.json()['id']}", strategy, format="json")
    assert changed.status_code == 200, changed.content
    switch_on(flag)

    assert ask(api, "kim")[0] is True
    assert ask(api, "kimi") == (False, "userId is kimi, needs a string that is kim, lee")
    page = html.unescape(browse("member").get(PAGE + added.json()["id"]).content.decode())
    assert "Text: equals" in page
    assert "The value is exactly one of these." in page
    message = markdown(AuditEvent.objects.filter(type="feature-strategy-update").latest("pk"))
    assert "userId is a string that equals (kim,lee)" in message
    refused = api["member"].post(
        FLAG, {**strategy, "constraints": [{**CONSTRAINT, "operator": "X"}]}, format="json"
    )
    assert "STR_EQUALS" in refused.content.decode()
