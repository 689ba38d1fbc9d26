"""The tools that tell the state of change requests, edit rules exactly and step release plans."""

import json

import pytest

from integrations.mcp.tool import MAX_TEXT
from projects.models import ProjectEnvironment
from releases.models import ChangeRequest, ReleasePlan
from releases.plans.queries import FlagPath
from tests.integrations.mcp.examples import EXAMPLES, cart
from tests.support.cast import client
from tests.support.flags import add_strategy, depend, make_flag, switch_on
from tests.support.mcp_client import call
from tests.support.plans import started, state_of

__all__ = ["cart"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def guarded(shop):
    ProjectEnvironment.objects.filter(project=shop, environment="production").update(required_approvals=1)


@pytest.fixture
def proposed(api, cart, guarded):
    call(api["owner"], "propose_change", **EXAMPLES["propose_change"], dry_run=False)
    return ChangeRequest.objects.get()


def test_open_requests_say_their_changes_and_approvals(api, proposed):
    [listed] = call(api["viewer"], "list_change_requests", flag="cart")["changeRequests"]
    assert (listed["id"], listed["state"], listed["by"]) == (proposed.pk, "In review", "owner")
    assert listed["changes"] == ["Turn cart off"]
    assert listed["approvals"] == {"given": [], "needed": 1}
    assert listed["reviewAt"] == f"http://testserver/projects/shop/change-requests/{proposed.pk}/"
    assert "conflicts" not in listed
    assert call(api["viewer"], "list_change_requests", state="closed")["changeRequests"] == []
    for elsewhere in ({"project": "default"}, {"environment": "development"}, {"flag": "other"}):
        assert call(api["viewer"], "list_change_requests", **elsewhere)["changeRequests"] == []


def test_one_request_has_what_each_change_takes(api, proposed):
    [listed] = call(api["viewer"], "list_change_requests", request=proposed.pk)["changeRequests"]
    [change] = listed["changes"]
    assert change == {"sentence": "Turn cart off"} | EXAMPLES["propose_change"]["changes"][0]
    assert listed["impact"]["onlyTurnsOff"]
    missing = call(api["viewer"], "list_change_requests", error=True, request=proposed.pk + 1)
    assert missing["details"][0]["path"] == "request"


def test_a_request_in_conflict_says_so(api, cart, proposed):
    cart.environments.filter(environment="production").update(enabled=False)
    [listed] = call(api["viewer"], "list_change_requests")["changeRequests"]
    assert listed["conflicts"]


def test_an_outsider_sees_no_requests(api, proposed):
    assert call(api["outsider"], "list_change_requests")["changeRequests"] == []
    assert call(api["outsider"], "list_change_requests", error=True, request=proposed.pk)


def test_a_rule_is_edited_exactly(api, cart):
    payload = {"type": "json", "value": json.dumps({"text": "x" * 3 * MAX_TEXT})}
    strategy = cart.strategies.get(environment="production")
    strategy.variants = [
        {"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "userId", "payload": payload}
    ]
    strategy.save()
    rules = call(api["viewer"], "get_flag", flag="cart", environment="production")["rules"]
    assert set(rules) == {"enabled", "strategies", "variants"}
    [rule] = rules["strategies"]
    assert rule["variants"][0]["payload"] == payload
    rule["parameters"]["rollout"] = "10"
    edit = {"id": rule["id"], "parameters": rule["parameters"]}
    call(
        api["owner"],
        "propose_change",
        project="shop",
        environment="production",
        title="Less",
        changes=[{"feature": "cart", "action": "updateStrategy", "payload": edit}],
        dry_run=False,
    )
    [change] = ChangeRequest.objects.get().changes.all()
    assert change.payload == edit
    refused = call(api["viewer"], "get_flag", error=True, flag="cart", environment="nowhere")
    assert "must be one of development, production, not nowhere" in refused["details"][0]["message"]


def test_nobody_changes_because_the_parent_is_off(api, cart, shop):
    parent = make_flag("checkout", project=shop)
    add_strategy(parent, "production", "default")
    depend(cart, parent)
    draft = {"strategies": [{"name": "default"}]}
    answer = call(api["viewer"], "who_changes", flag="cart", environment="production", draft=draft)
    assert answer["changed"] == 0
    assert len(answer["whyNobody"]) == 1
    assert "checkout" in answer["whyNobody"][0]
    switch_on(parent, "production")
    answer = call(api["viewer"], "who_changes", flag="cart", environment="production", draft=draft)
    assert answer["changed"]
    assert "whyNobody" not in answer
    same = call(api["viewer"], "who_changes", flag="cart", environment="production", draft={"enabled": True})
    assert same["whyNobody"] == ["The flag is the same in both states."]


@pytest.fixture
def plan(cart):
    return started(50, 75, 100, place=FlagPath("shop", "cart", "production"))


def step(who, action, **arguments):
    return call(who, "step_release_plan", flag="cart", environment="production", action=action, **arguments)


def test_a_flag_tells_its_plans(api, plan):
    [told] = call(api["viewer"], "get_flag", flag="cart")["releasePlans"]
    assert (told["environment"], told["state"]) == ("production", ReleasePlan.State.RUNNING)
    first, second, _ = plan.milestones.all()
    assert [milestone["name"] for milestone in told["milestones"] if milestone.get("active")] == [first.name]
    assert told["next"] == second.name
    assert told["waitsFor"]


def test_plans_are_paused_resumed_and_stepped(api, plan):
    first, second, _ = plan.milestones.all()
    tried = step(api["owner"], "pause")
    assert (tried["before"]["state"], tried["after"]["state"]) == ("running", "paused")
    assert state_of(plan)[0] == "running"
    for action, expected in (
        ("pause", ("paused", first.name)),
        ("resume", ("running", first.name)),
        ("next", ("running", second.name)),
        ("back", ("paused", first.name)),
    ):
        assert step(api["owner"], action, dry_run=False)["done"] == "Saved."
        assert state_of(plan) == expected
    refused = call(
        api["owner"], "step_release_plan", error=True, flag="cart", environment="production", action="back"
    )
    assert "is at its first milestone" in refused["message"]


@pytest.mark.parametrize("name", ["viewer", "reader"])
def test_a_viewer_steps_no_plan(api, plan, name):
    arguments = {"flag": "cart", "environment": "production", "action": "pause", "dry_run": False}
    refused = call(api[name], "step_release_plan", error=True, **arguments)
    assert refused["error"] == "NoAccessError"
    assert state_of(plan)[0] == "running"


def test_a_client_without_a_token_learns_that_it_takes_bearer_tokens(shop):
    refused = client(None).post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert refused.status_code == 401
    address = "http://testserver/.well-known/oauth-protected-resource/mcp"
    assert refused["WWW-Authenticate"] == f'Bearer resource_metadata="{address}"'
    metadata = client(None).get(address).json()
    assert metadata["resource"] == "http://testserver/mcp"
    assert metadata["bearer_methods_supported"] == ["header"]
    assert metadata["resource_documentation"] == "http://testserver/access/agents/"
