"""The environments API, and which environments a project uses."""

from projects.models import Environment, ProjectEnvironment, Strategy
from tests.support.cast import make_token
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.records import events, refused

URL = "/api/admin/environments"


def test_listed_in_their_order_with_counts(api):
    make_flag("on", environment="production", enabled=True)
    make_flag("old", environment="production", enabled=True, archived=True)
    make_token("backend", projects=["shop"], environment="production")
    make_token("backend", environment="production")  # for all projects
    listed = api["viewer"].get(URL).json()["environments"]
    assert [environment["name"] for environment in listed] == ["development", "production"]
    assert listed[1] == {
        "name": "production",
        "type": "production",
        "sortOrder": 3,
        "enabled": True,
        "protected": False,
        "projectCount": 2,
        "apiTokenCount": 2,
        "enabledToggleCount": 1,
    }
    mine = api["outsider"].get(URL).json()["environments"][1]
    assert (mine["projectCount"], mine["apiTokenCount"], mine["enabledToggleCount"]) == (0, 1, 0)
    in_shop = api["reader"].get(f"{URL}/project/shop").json()["environments"][1]
    assert in_shop["projectApiTokenCount"] == 2


def test_created_changed_and_deleted(api):
    made = api["admin"].post(URL, {"name": "staging", "type": "preproduction"})
    assert made.status_code == 201
    assert made.json()["enabled"] is True
    changed = api["admin"].put(f"{URL}/update/staging", {"type": "test", "sortOrder": 7})
    assert changed.json() == api["viewer"].get(f"{URL}/staging").json()
    assert (changed.json()["type"], changed.json()["sortOrder"]) == ("test", 7)
    assert api["admin"].post(f"{URL}/staging/off", {}).status_code == 204
    assert api["viewer"].get(f"{URL}/staging").json()["enabled"] is False
    assert api["admin"].post(f"{URL}/staging/on", {}).status_code == 204
    assert api["admin"].delete(f"{URL}/staging").status_code == 200
    refused(api["admin"].get(f"{URL}/staging"), 404, "NotFoundError")
    kinds = ["environment-created", *["environment-updated"] * 3, "environment-deleted"]
    assert [event.type for event in events(*set(kinds))] == kinds


def test_an_admin_sorts_environments_by_known_names_only(api):
    assert api["admin"].put(f"{URL}/sort-order", {"development": 9, "production": 1}).status_code == 200
    assert [e.name for e in Environment.objects.all()] == ["production", "development"]
    record = refused(api["admin"].put(f"{URL}/sort-order", {"nosuch": 1}), 400, "ValidationError")
    assert "development, production" in record["message"]
    refused(api["admin"].put(f"{URL}/sort-order", {"production": "first"}), 400, "ValidationError")
    refused(api["admin"].put(f"{URL}/sort-order", ["production"]), 400, "ValidationError")


def test_not_deleted_while_in_use(api, shop):
    record = refused(api["admin"].delete(f"{URL}/production"), 409, "ConflictError")
    assert "default, shop" in record["message"]
    ProjectEnvironment.objects.filter(environment="production").delete()
    make_token("backend", environment="production", name="checkout")
    record = refused(api["admin"].delete(f"{URL}/production"), 409, "ConflictError")
    assert "checkout" in record["message"]


def test_deleted_with_what_flags_had_there(api, shop):
    flag = make_flag("left")
    add_strategy(flag, environment="production")
    ProjectEnvironment.objects.filter(environment="production").delete()
    assert api["admin"].delete(f"{URL}/production").status_code == 200
    assert not Strategy.objects.filter(flag=flag).exists()


def test_names_that_are_taken_malformed_or_unknown_are_refused(api):
    refused(api["admin"].post(URL, {"name": "production", "type": "x"}), 409, "NameExistsError")
    refused(api["admin"].post(f"{URL}/validate", {"name": "production"}), 409, "NameExistsError")
    refused(api["admin"].post(f"{URL}/validate", {"name": "a b"}), 400, "ValidationError")
    refused(api["admin"].post(URL, {"name": "a b", "type": "x"}), 400, "ValidationError")
    refused(api["admin"].post(URL, {"name": "x"}), 400, "ValidationError")
    assert api["admin"].post(f"{URL}/validate", {"name": "staging"}).status_code == 200
    refused(api["viewer"].post(f"{URL}/validate", {}), 403, "NoAccessError")

    for response in (
        api["admin"].get(f"{URL}/nosuch"),
        api["admin"].put(f"{URL}/update/nosuch", {}),
        api["admin"].post(f"{URL}/nosuch/on", {}),
        api["admin"].delete(f"{URL}/nosuch"),
    ):
        refused(response, 404, "NotFoundError")


# In a project ---------------------------------------------------------------------------------------------

SHOP = "/api/admin/projects/shop/environments"


def test_a_project_takes_one_up_and_gives_one_up(api):
    api["admin"].post(URL, {"name": "staging", "type": "test"})
    assert api["owner"].post(SHOP, {"environment": "staging"}).status_code == 200
    refused(api["owner"].post(SHOP, {"environment": "staging"}), 409, "NameExistsError")
    visible = {
        e["name"]: e["visible"] for e in api["reader"].get(f"{URL}/project/shop").json()["environments"]
    }
    assert visible == {"development": True, "production": True, "staging": True}
    assert api["owner"].delete(f"{SHOP}/staging").status_code == 200
    refused(api["owner"].delete(f"{SHOP}/staging"), 404, "NotFoundError")
    assert [event.environment for event in events("project-environment-removed")] == ["staging"]


def test_a_project_keeps_where_flags_are_on(api):
    flag = make_flag("live", environment="production", enabled=True)
    record = refused(api["owner"].delete(f"{SHOP}/production"), 409, "ConflictError")
    assert "live" in record["message"]
    flag.environments.update(enabled=False)
    assert api["owner"].delete(f"{SHOP}/production").status_code == 200
    refused(api["owner"].delete(f"{SHOP}/development"), 400, "ValidationError")


def test_a_default_strategy_is_stored_as_text_and_shown(api):
    strategy = {"name": "flexibleRollout", "parameters": {"rollout": 50}}
    stored = api["owner"].post(f"{SHOP}/production/default-strategy", strategy)
    assert stored.status_code == 200
    assert stored.json()["parameters"]["rollout"] == "50"
    overview = api["reader"].get("/api/admin/projects/shop/overview").json()["environments"]
    assert overview == [
        {"environment": "development"},
        {"environment": "production", "defaultStrategy": stored.json()},
    ]
    assert events("default-strategy-updated")[0].environment == "production"


@for_each(
    ("strategy", "path"),
    [
        ({"name": "nosuch"}, "name"),
        ({"name": "default", "segments": [4711]}, "segments[0]"),
        (
            {"name": "default", "constraints": [{"contextName": "a", "operator": "NOPE"}]},
            "constraints[0].operator",
        ),
        ({}, "name"),
    ],
)
def test_default_strategies_that_are_refused(api, strategy, path):
    record = refused(
        api["owner"].post(f"{SHOP}/production/default-strategy", strategy), 400, "ValidationError"
    )
    assert [problem["path"] for problem in record["details"]] == [path]


def test_places_that_are_not_there_are_not_found(api):
    refused(api["owner"].post(SHOP, {"environment": "nosuch"}), 400, "ValidationError")
    refused(api["owner"].delete(f"{SHOP}/nosuch"), 404, "NotFoundError")
    body = {"name": "default"}
    refused(api["owner"].post(f"{SHOP}/nosuch/default-strategy", body), 404, "NotFoundError")
    of_default = "/api/admin/projects/default/environments"
    refused(api["owner"].post(of_default, {"environment": "production"}), 404, "NotFoundError")
    refused(api["owner"].get(f"{URL}/project/default"), 404, "NotFoundError")
