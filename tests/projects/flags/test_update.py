"""PUT and PATCH of a flag, and marking several flags as stale."""

import pytest

from projects.models import Flag
from tests.support.flags import make_flag
from tests.support.for_each import for_each
from tests.support.records import events, refused

PATH = "/api/admin/projects/shop/features/cart"
KINDS = ("feature-metadata-updated", "feature-stale-on", "feature-stale-off")


@pytest.fixture
def cart(shop):
    return make_flag("cart", description="old")


def put(client, **body):
    return client.put(PATH, body, format="json")


def patch(client, *operations):
    return client.patch(PATH, list(operations), format="json")


def test_what_is_given_changes_with_events_of_its_own_for_stale(api, cart):
    response = put(api["member"], description="new", type="experiment", impressionData=True, name="cart")
    assert response.status_code == 200
    assert response.json()["description"] == "new"
    cart.refresh_from_db()
    assert (cart.description, cart.type, cart.impression_data, cart.stale) == (
        "new",
        "experiment",
        True,
        False,
    )
    [event] = events(*KINDS)
    assert (event.before["description"], event.after["description"]) == ("old", "new")

    put(api["member"], stale=True)
    put(api["member"], stale=False)
    assert [event.type for event in events(*KINDS)][1:] == ["feature-stale-on", "feature-stale-off"]


def test_a_json_patch_is_a_list_and_no_change_no_event(api, cart):
    assert put(api["member"], description="old").status_code == 200
    assert put(api["member"]).status_code == 200
    assert events(*KINDS) == []

    response = patch(
        api["member"],
        {"op": "test", "path": "/description", "value": "old"},
        {"op": "replace", "path": "/description", "value": "patched"},
        {"op": "replace", "path": "/stale", "value": True},
    )
    assert response.status_code == 200
    cart.refresh_from_db()
    assert (cart.description, cart.stale) == ("patched", True)

    refused(api["member"].patch(PATH, {"op": "remove"}, format="json"), 400, "ValidationError")


@for_each(
    ("operation", "path", "said"),
    [
        (
            {"op": "explode", "path": "/type"},
            "[1].op",
            "must be add, move, remove, replace or test, not explode",
        ),
        ({"op": "test", "path": "/type", "value": "x"}, "[1].value", "/type has a different value."),
        ({"op": "remove", "path": "/nothing"}, "[1]", "/nothing does not exist."),
        ({"op": "add", "path": "/tags/0", "value": 1}, "[1]", "/tags/0 does not exist."),
        ({"op": "add", "path": "/type/x", "value": 1}, "[1]", "/type/x does not exist."),
        ({"op": "move", "path": "/type", "from": "/no"}, "[1]", "/no or /type does not exist."),
        ({"op": "move", "path": "/type"}, "[1].from", "is required for move"),
        ({"op": "add", "path": "/type"}, "[1].value", "is required for add"),
        ({"op": "remove", "path": "type"}, "[1].path", 'must be "" or start with "/", not type'),
    ],
)
def test_a_refused_patch_names_the_operation(api, cart, operation, path, said):
    record = refused(
        patch(api["member"], {"op": "replace", "path": "/stale", "value": True}, operation),
        400,
        "ValidationError",
    )
    assert record["details"] == [{"path": path, "message": said}]


@for_each(
    "operation",
    [
        {"op": "replace", "path": "/name", "value": "other"},
        {"op": "replace", "path": "/archived", "value": True},
        {"op": "copy", "from": "/description", "path": "/type"},
        {"op": "replace", "path": "", "value": 5},
        {"op": "replace", "path": "", "value": []},
        {"op": "replace", "path": "", "value": {"description": "no name"}},
        {"op": "remove", "path": ""},
        {"op": "move", "path": "/type", "from": ""},
        {"op": "replace", "path": "/stale", "value": "maybe"},
        "nonsense",
    ],
)
def test_patches_that_are_refused(api, cart, operation):
    refused(patch(api["member"], operation), 400, "ValidationError")
    assert Flag.objects.get().description == "old"


def test_a_type_must_exist_or_be_stored(api, cart):
    record = refused(put(api["member"], type="bogus"), 400, "ValidationError")
    assert [problem["path"] for problem in record["details"]] == ["type"]

    Flag.objects.update(type="toggle")
    assert put(api["member"], type="toggle", description="new").status_code == 200
    assert Flag.objects.get().type == "toggle"


def test_unknown_and_archived_flags(api, cart):
    refused(api["member"].put(PATH + "x", {}, format="json"), 404, "NotFoundError")
    Flag.objects.update(archived_at=cart.created_at)
    assert "archived" in refused(put(api["member"], stale=True), 404, "NotFoundError")["message"]


def test_many_flags_become_stale(api, cart):
    make_flag("other", stale=True)
    body = {"features": ["cart", "other"], "stale": True}
    path = "/api/admin/projects/shop/stale"
    assert api["member"].post(path, body, format="json").status_code == 202
    assert Flag.objects.filter(stale=True).count() == 2
    assert [event.feature for event in events("feature-stale-on")] == ["cart"]
    refused(api["member"].post(path, {"features": "cart"}, format="json"), 400, "ValidationError")
