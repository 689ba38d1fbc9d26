"""POST …/features/:name/clone: copying a flag."""

import pytest

from projects.models import Flag, FlagEnvironment, FlagTag, Segment
from tests.support.flags import add_strategy, depend, make_flag, switch_on
from tests.support.records import events, refused

PATH = "/api/admin/projects/shop/features/cart/clone"
VARIANT = {"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}


@pytest.fixture
def cart(shop):
    flag = make_flag("cart", type="experiment", description="d", impression_data=True)
    strategy = add_strategy(flag, name="flexibleRollout", parameters={"rollout": "5", "groupId": "cart"})
    strategy.segments.add(Segment.objects.create(name="vip"))
    add_strategy(flag, "production", parameters={"groupId": "shared"}, disabled=True)
    FlagEnvironment.objects.filter(flag=flag, environment="production").update(variants=[VARIANT])
    FlagTag.objects.create(flag=flag, tag_type_id="simple", value="ab")
    depend(flag, make_flag("parent"), variants=["x"])
    switch_on(flag)
    return flag


def clone(client, **body):
    return client.post(PATH, {"name": "copy", **body}, format="json")


def test_everything_but_the_switch(api, cart):
    response = clone(api["member"])
    assert response.status_code == 201
    assert response.json()["type"] == "experiment"
    record = api["reader"].get("/api/admin/projects/shop/features/copy").json()
    development, production = record["environments"]
    assert (development["enabled"], production["enabled"]) == (False, False)
    [strategy] = development["strategies"]
    assert strategy["parameters"] == {"rollout": "5", "groupId": "copy"}
    assert strategy["segments"] == [Segment.objects.get().pk]
    assert [s["parameters"] for s in production["strategies"]] == [{"groupId": "copy"}]
    assert production["variants"] == [VARIANT]
    assert record["dependencies"] == [{"feature": "parent", "enabled": True, "variants": ["x"]}]
    assert (record["description"], record["impressionData"]) == ("d", True)
    assert [tag.value for tag in Flag.objects.get(name="copy").tags.all()] == ["ab"]
    assert cart.strategies.count() == 2
    [event] = events("feature-created")
    assert (event.feature, event.after["clonedFrom"]) == ("copy", "cart")


def test_keeping_the_group_and_what_is_refused(api, cart):
    clone(api["member"], replaceGroupId=False)
    groups = {s.parameters["groupId"] for s in Flag.objects.get(name="copy").strategies.all()}
    assert groups == {"cart", "shared"}

    refused(clone(api["member"], name="parent"), 409, "NameExistsError")
    refused(clone(api["member"], name="a b"), 400, "ValidationError")
    path = PATH.replace("cart", "nope")
    refused(api["member"].post(path, {"name": "x"}, format="json"), 404, "NotFoundError")
    assert Flag.objects.count() == 3
