"""The operator of docs/engine.md is one entry: evaluation, forms, sentences, the API, messages and comparisons know it."""

import html

import pytest

from flagadmin.core.audit.models import AuditEvent
from integrations.messages.message import markdown
from playground.comparison.rules import Condition
from playground.engine import operators
from projects.strategies.serializers import ConstraintBody
from tests.documentation.blocks import blocks
from tests.support.flags import make_flag, switch_on

FLAG = "/api/admin/projects/shop/features/cart/environments/development/strategies"
PAGE = "/projects/shop/features/cart/strategies/edit?environmentId=development&strategyId="
CONSTRAINT = {"contextName": "userId", "operator": "STR_EQUALS", "values": ["kim", "lee"]}


@pytest.fixture(autouse=True)
def _equals(monkeypatch):
    [entry] = [block.text for block in blocks("docs/engine.md") if '"STR_EQUALS": Operator(' in block.text]
    for name, operator in eval(f"{{{entry}}}", vars(operators)).items():
        monkeypatch.setitem(operators.OPERATORS, name, operator)


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
    assert "STR_EQUALS" in str(ConstraintBody().fields["operator"].help_text)
    assert "lee" in Condition.of(CONSTRAINT).values()
