"""An applied request is taken back by a request of its own."""

from typing import Any

import pytest

from flagadmin.core.errors import InvalidOperation
from groups.access import Caller
from projects.definitions import read_definitions
from projects.models import Flag, ProjectEnvironment, Segment, Strategy
from projects.strategies.actions import update_strategy
from releases.models import ChangeRequest
from releases.requests.revert import revert_request
from releases.templates.actions import create_template
from tests.support.change_requests import REQUESTS, enter, sent, turn
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cart(shop: Any) -> Flag:
    """20 % of cart, where changes need one approval."""
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=1)
    parameters = {"rollout": "20", "stickiness": "default", "groupId": "cart"}
    return live_flag("cart", strategies=[{"name": "flexibleRollout", "parameters": parameters}])


def applied(api: Any, *changes: Any) -> Any:
    made = sent(api["owner"], *changes)
    for state in ("Approved", "Applied"):
        answer = enter(api["admin"], made, state)
        assert answer.status_code == 200, answer.json()
    return made


def taken_back(api: Any, made: Any) -> Any:
    answer = api["owner"].post(f"{REQUESTS}/{made['id']}/revert")
    assert answer.status_code == 200, answer.json()
    inverse = answer.json()
    for state in ("Approved", "Applied"):
        assert enter(api["admin"], inverse, state).status_code == 200
    return inverse


def stored() -> Any:
    """Whatever ids strategies have."""
    return [
        {**flag, "strategies": [{**each, "id": ""} for each in flag["strategies"]]}
        for flag in read_definitions(["shop"], "production").flags
    ]


def test_everything_is_as_before(api, cart):
    live_flag("parent", strategies=[{"name": "default"}])
    strategy = Strategy.objects.get(flag=cart, environment="production")
    before = stored()
    variant = {"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "default"}
    made = applied(
        api,
        {"feature": "cart", "action": "addStrategy", "payload": {"name": "default", "title": "New"}},
        {"feature": "cart", "action": "updateStrategy", "payload": {"id": str(strategy.pk), "title": "Old"}},
        {"feature": "cart", "action": "patchVariant", "payload": {"variants": [variant]}},
        {"feature": "cart", "action": "addDependency", "payload": {"feature": "parent"}},
        turn(False),
    )
    assert stored() != before
    inverse = taken_back(api, made)
    assert inverse["title"] == f"Revert request {made['id']}"
    assert stored() == before


def test_a_removed_strategy_comes_back(api, cart):
    strategy = Strategy.objects.get(flag=cart, environment="production")
    before = stored()
    made = applied(api, {"feature": "cart", "action": "deleteStrategy", "payload": {"id": str(strategy.pk)}})
    taken_back(api, made)
    assert stored() == before


def test_a_segment_comes_back(api, cart):
    segment = Segment.objects.create(name="beta", constraints=[])
    live_flag("other", strategies=[{"name": "default", "segments": [segment]}])
    only = [{"contextName": "userId", "operator": "IN", "values": ["7"]}]
    made = applied(api, {"action": "updateSegment", "payload": {"id": segment.pk, "constraints": only}})
    taken_back(api, made)
    segment.refresh_from_db()
    assert segment.constraints == []


def test_the_name_and_description_of_a_segment_come_back_whatever_uses_it(api, cart):
    segment = Segment.objects.create(name="beta", description="Early", constraints=[], project_id="shop")
    changes = {"id": segment.pk, "name": "gamma", "description": "Late"}
    made = applied(api, {"action": "updateSegment", "payload": changes})
    theirs = [{"contextName": "userId", "operator": "IN", "values": ["7"]}]
    Segment.objects.filter(pk=segment.pk).update(constraints=theirs)
    [inverse] = api["owner"].post(f"{REQUESTS}/{made['id']}/revert").json()["segments"]
    assert inverse["payload"] == {"id": segment.pk, "name": "beta", "description": "Early"}


def test_what_others_have_changed_since_stays(api, cart):
    strategy = Strategy.objects.get(flag=cart, environment="production")
    made = applied(
        api,
        {"feature": "cart", "action": "updateStrategy", "payload": {"id": str(strategy.pk), "title": "Mine"}},
    )
    ProjectEnvironment.objects.update(required_approvals=None)
    theirs = {"parameters": {"rollout": "70", "stickiness": "default", "groupId": "cart"}}
    update_strategy("shop", "cart", "production", str(strategy.pk), theirs, caller=Caller.system())
    inverse = api["owner"].post(f"{REQUESTS}/{made['id']}/revert").json()
    assert enter(api["owner"], inverse, "Applied").status_code == 200
    strategy.refresh_from_db()
    assert (strategy.title or "", strategy.parameters["rollout"]) == ("", "70")


def test_what_no_request_can_take_back(api, cart, people):
    made = sent(api["owner"], turn(False))
    with pytest.raises(InvalidOperation, match="must be in state Applied"):
        revert_request("shop", made["id"], caller=Caller(user=people["owner"]))
    archived = applied(api, {"feature": "cart", "action": "archiveFeature"})
    with pytest.raises(InvalidOperation, match="Revive it instead"):
        revert_request("shop", archived["id"], caller=Caller(user=people["owner"]))


def test_what_is_taken_back_otherwise_is_said(api, cart, people):
    owner = Caller(user=people["owner"])
    segment = Segment.objects.create(name="beta", constraints=[], project_id="shop")
    deleted = applied(api, turn(False), {"action": "deleteSegment", "payload": {"id": segment.pk}})
    with pytest.raises(InvalidOperation, match=r"has deleted a segment. Create it again instead\."):
        revert_request("shop", deleted["id"], caller=owner)
    template = create_template({"name": "T", "milestones": [{"name": "A"}]}, caller=Caller.system())
    added = applied(
        api, {"feature": "cart", "action": "addReleasePlan", "payload": {"templateId": template.pk}}
    )
    with pytest.raises(InvalidOperation, match=r"only release plans or safeguards\. Change these"):
        revert_request("shop", added["id"], caller=owner)


def test_its_page_has_the_button(api, browse, cart):
    made = applied(api, turn(False))
    page = f"/projects/shop/change-requests/{made['id']}/"
    assert "Revert" in browse("viewer").get(page).text
    answer = browse("viewer").post(f"{page}revert")
    inverse = ChangeRequest.objects.order_by("-pk").first()
    assert inverse is not None
    assert answer.url == f"/projects/shop/change-requests/{inverse.pk}/"
    assert inverse.state == "In review"
