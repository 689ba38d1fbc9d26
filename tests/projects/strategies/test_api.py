"""Adding, reading, changing, deleting and sorting the strategies of a flag in an environment."""

import uuid
from itertools import count

import pytest

from projects.models import Segment, Strategy
from tests.support.cast import make_project
from tests.support.flags import add_strategy, is_on, make_flag, switch_on
from tests.support.for_each import for_each
from tests.support.records import events, refused

PATH = "/api/admin/projects/shop/features/cart/environments/development/strategies"


@pytest.fixture
def cart(shop):
    shop.default_stickiness = "userId"
    shop.save()
    return make_flag("cart")


def add(client, path=PATH, **body):
    return client.post(path, {"name": "flexibleRollout", **body}, format="json")


def test_adding_fills_in_what_a_rollout_needs(api, cart):
    response = add(api["member"], parameters={"rollout": 25})
    assert response.status_code == 200
    record = response.json()
    assert uuid.UUID(record.pop("id"))
    assert record == {
        "name": "flexibleRollout",
        "title": None,
        "disabled": False,
        "sortOrder": 0,
        "parameters": {"rollout": "25", "stickiness": "userId", "groupId": "cart"},
        "constraints": [],
        "variants": [],
        "segments": [],
    }
    [event] = events("feature-strategy-add")
    assert (event.environment, event.feature, event.after["name"]) == (
        "development",
        "cart",
        "flexibleRollout",
    )


def test_everything_given_is_stored(api, cart):
    segments = [Segment.objects.create(name=name).pk for name in ("b", "a")]
    body = {
        "title": "half",
        "disabled": True,
        "sortOrder": 7,
        "constraints": [{"contextName": "userId", "operator": "NUM_GT", "value": 5, "inverted": True}],
        "variants": [
            {"name": "z", "weight": 0, "weightType": "variable", "stickiness": "default"},
            {"name": "a", "weight": 300, "weightType": "fix", "stickiness": "default"},
        ],
        "segments": segments,
    }
    record = add(api["member"], **body).json()
    assert (record["title"], record["disabled"], record["sortOrder"]) == ("half", True, 7)
    assert record["constraints"] == [
        {"contextName": "userId", "operator": "NUM_GT", "value": "5", "values": [], "inverted": True}
    ]
    assert [(v["name"], v["weight"]) for v in record["variants"]] == [("a", 300), ("z", 700)]
    assert record["segments"] == segments
    assert api["reader"].get(f"{PATH}/{record['id']}").json() == record


def test_strategies_are_listed_in_order_and_new_ones_come_last(api, cart):
    for title in ("first", "second"):
        add(api["member"], title=title)
    add(api["member"], title="before", sortOrder=-1)
    listed = api["reader"].get(PATH).json()
    assert [(s["title"], s["sortOrder"]) for s in listed] == [("before", -1), ("first", 0), ("second", 1)]
    add(api["member"], title="third", sortOrder=2**31 - 1, disabled=True)
    assert add(api["member"]).json()["sortOrder"] == 2**31 - 1


def test_every_problem_with_its_place(api, cart):
    record = refused(
        add(
            api["member"],
            name="nope",
            constraints=[{"contextName": "userId", "operator": "IN", "values": []}],
            segments=[99],
            variants=[{"name": "a", "weight": 1, "weightType": "fix", "stickiness": "default"}],
        ),
        400,
        "ValidationError",
    )
    assert [problem["path"] for problem in record["details"]] == [
        "name",
        "constraints[0].values",
        "variants",
        "segments[0]",
    ]
    assert not Strategy.objects.exists()

    theirs = Segment.objects.create(name="theirs", project=make_project("other"))
    record = refused(add(api["member"], segments=[theirs.pk]), 400, "ValidationError")
    assert "theirs" not in record["message"]


@for_each(
    ("body", "path"),
    [
        ({"name": None}, "name"),
        ({"parameters": {"rollout": {"a": 1}}}, "parameters.rollout"),
        ({"constraints": [{"contextName": "x", "operator": "IN", "values": ["a"], "valuess": []}]},
         "constraints[0].valuess"),
        ({"variants": [{"name": "a", "weight": 0.5, "weightType": "variable", "stickiness": "x"}]},
         "variants[0].weight"),
        ({"segments": "1"}, "segments"),
    ],
)  # fmt: skip
def test_malformed_bodies(api, cart, body, path):
    record = refused(add(api["member"], **body), 400, "ValidationError")
    assert [problem["path"] for problem in record["details"]] == [path]


def test_a_limit_of_strategies(api, cart, settings):
    settings.FLAG_ENVIRONMENT_STRATEGIES_LIMIT = 1
    assert add(api["member"]).status_code == 200
    refused(add(api["member"]), 400, "ValidationError")
    assert add(api["member"], PATH.replace("development", "production")).status_code == 200


def test_changing_what_is_given(api, cart):
    strategy = add_strategy(cart, title="old", parameters={"a": "b"}, sort_order=3)
    response = api["member"].put(f"{PATH}/{strategy.pk}", {"title": "new", "parameters": None}, format="json")
    assert response.status_code == 200
    record = response.json()
    assert (record["title"], record["parameters"], record["sortOrder"]) == ("new", {"a": "b"}, 3)
    [event] = events("feature-strategy-update")
    assert (event.before["title"], event.after["title"]) == ("old", "new")


def test_a_json_patch(api, cart):
    strategy = add_strategy(cart, title="old", parameters={"a": "b"})
    operations = [
        {"op": "replace", "path": "/parameters/a", "value": "c"},
        {"op": "replace", "path": "/title", "value": None},
        {
            "op": "add",
            "path": "/constraints/-",
            "value": {"contextName": "x", "operator": "IN", "values": ["y"]},
        },
    ]
    response = api["member"].patch(f"{PATH}/{strategy.pk}", operations, format="json")
    assert response.status_code == 200
    strategy.refresh_from_db()
    assert (strategy.parameters, strategy.title) == ({"a": "c"}, None)
    assert strategy.constraints == [{"contextName": "x", "operator": "IN", "values": ["y"]}]


def test_segments_are_replaced_in_the_order_given(api, cart):
    strategy = add_strategy(cart)
    one, two = (Segment.objects.create(name=name).pk for name in ("one", "two"))
    for wanted in ([one, two], [two, one], []):
        body = {"segments": wanted}
        assert api["member"].put(f"{PATH}/{strategy.pk}", body, format="json").json()["segments"] == wanted


def test_a_flag_that_loses_its_last_enabled_strategy_is_switched_off(api, cart):
    first, second = add_strategy(cart), add_strategy(cart)
    switch_on(cart)
    api["member"].put(f"{PATH}/{first.pk}", {"disabled": True}, format="json")
    assert is_on("cart", "development")
    assert api["member"].delete(f"{PATH}/{second.pk}").status_code == 200
    assert not is_on("cart", "development")
    assert [event.environment for event in events("feature-environment-disabled")] == ["development"]
    assert [event.before["id"] for event in events("feature-strategy-remove")] == [str(second.pk)]


def test_ordering(api, cart):
    first, second = add_strategy(cart, sort_order=0), add_strategy(cart, sort_order=1)
    orders = [{"id": str(first.pk), "sortOrder": 5}]
    assert api["member"].post(f"{PATH}/set-sort-order", orders, format="json").status_code == 200
    assert [s["id"] for s in api["member"].get(PATH).json()] == [str(second.pk), str(first.pk)]
    [event] = events("strategy-order-changed")
    assert event.after == {"strategyIds": [str(second.pk), str(first.pk)]}

    elsewhere = add_strategy(cart, "production")
    orders = [{"id": str(elsewhere.pk), "sortOrder": 5}, {"id": "nope", "sortOrder": 1}]
    record = refused(
        api["member"].post(f"{PATH}/set-sort-order", orders, format="json"), 400, "ValidationError"
    )
    assert [problem["path"] for problem in record["details"]] == ["[0].id", "[1].id"]


def test_strategies_of_one_place_stand_in_order_of_creation(api, cart, monkeypatch):
    moments = count(1_800_000_000_000_000_000, 1_000_000)  # a millisecond apart
    monkeypatch.setattr("projects.models.strategies.time.time_ns", lambda: next(moments))
    made = [str(add_strategy(cart, sort_order=3).pk) for _ in range(4)]
    assert [strategy["id"] for strategy in api["member"].get(PATH).json()] == made


def test_unknown_places_and_strategies(api, cart):
    elsewhere = add_strategy(make_flag("other"))
    for path in (f"{PATH}/{elsewhere.pk}", f"{PATH}/nope", f"{PATH}/{uuid.uuid4()}"):
        refused(api["member"].get(path), 404, "NotFoundError")
        refused(api["member"].put(path, {}, format="json"), 404, "NotFoundError")
        refused(api["member"].delete(path), 404, "NotFoundError")
    refused(add(api["member"], PATH.replace("development", "staging")), 404, "NotFoundError")
    refused(add(api["member"], PATH.replace("cart", "nope")), 404, "NotFoundError")
    make_flag("old", archived=True)
    refused(add(api["member"], PATH.replace("cart", "old")), 404, "NotFoundError")


@for_each(
    ("path", "left"),
    [("/segments", []), ("/title", None), ("/constraints", []), ("/disabled", False), ("/variants", [])],
)
def test_a_json_patch_removes(api, cart, path, left):
    segment = Segment.objects.create(name="vip")
    strategy = add_strategy(
        cart,
        title="old",
        disabled=True,
        sort_order=3,
        constraints=[{"contextName": "plan", "operator": "IN", "values": ["gold"]}],
        variants=[{"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}],
    )
    strategy.segments.add(segment)
    url = f"{PATH}/{strategy.pk}"
    before = api["member"].get(url).json()
    response = api["member"].patch(url, [{"op": "remove", "path": path}], format="json")
    assert response.status_code == 200
    assert api["member"].get(url).json() == response.json() == before | {path[1:]: left}


@for_each(
    "operation",
    [
        {"op": "remove", "path": "/name"},
        {"op": "remove", "path": "/id"},
        {"op": "remove", "path": "/nope"},
        {"op": "add", "path": "/surprise", "value": 1},
    ],
)
def test_a_json_patch_that_is_refused_names_its_place(api, cart, operation):
    response = api["member"].patch(f"{PATH}/{add_strategy(cart).pk}", [operation], format="json")
    assert operation["path"][1:] in refused(response, 400, "ValidationError")["message"]
