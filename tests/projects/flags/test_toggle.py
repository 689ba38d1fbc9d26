"""Turning a flag on and off, and its variants, in an environment."""

from groups.models import Grant, Role, RolePermission
from projects.models import FlagEnvironment, ProjectEnvironment
from tests.support.flags import add_strategy, is_on, make_flag, switch_on
from tests.support.for_each import for_each
from tests.support.records import events, refused

PATH = "/api/admin/projects/shop/features/cart/environments/development"
BLUE = {"name": "blue", "weight": 500, "weightType": "variable", "stickiness": "default"}
RED = {"name": "red", "weight": 500, "weightType": "variable", "stickiness": "default"}


def test_on_and_off(api, cart):
    add_strategy(cart)
    response = api["member"].post(f"{PATH}/on")
    assert (response.status_code, response.content) == (200, b"")
    assert is_on("cart", "development")
    assert api["member"].post(f"{PATH}/off", {}, format="json").status_code == 200
    assert not is_on("cart", "development")
    kinds = [e.type for e in events("feature-environment-enabled", "feature-environment-disabled")]
    assert kinds == ["feature-environment-enabled", "feature-environment-disabled"]


def test_only_a_real_change_is_recorded(api, cart):
    add_strategy(cart)
    switch_on(cart)
    api["member"].post(f"{PATH}/on")
    assert events("feature-environment-enabled") == []
    assert cart.strategies.count() == 1


def test_without_a_strategy_it_gets_one_for_everyone(api, cart):
    add_strategy(cart, disabled=True)
    assert api["member"].post(f"{PATH}/on").status_code == 200
    added = cart.strategies.get(disabled=False)
    assert added.name == "flexibleRollout"
    assert added.parameters == {"rollout": "100", "stickiness": "default", "groupId": "cart"}
    assert [event.type for event in events("feature-strategy-add", "feature-environment-enabled")] == [
        "feature-strategy-add",
        "feature-environment-enabled",
    ]


def test_without_a_strategy_it_gets_the_projects_default_one(api, cart, shop):
    ProjectEnvironment.objects.filter(project=shop, environment="development").update(
        default_strategy={
            "name": "flexibleRollout",
            "parameters": {"rollout": "10", "stickiness": "sessionId"},
            "constraints": [{"contextName": "userId", "operator": "IN", "values": ["1"]}],
        }
    )
    api["member"].post(f"{PATH}/on")
    added = cart.strategies.get()
    assert added.parameters == {"rollout": "10", "stickiness": "sessionId", "groupId": "cart"}
    assert added.constraints == [{"contextName": "userId", "operator": "IN", "values": ["1"]}]


def test_disabled_strategies_can_be_enabled_instead(api, cart):
    strategy = add_strategy(cart, disabled=True)
    assert api["member"].post(f"{PATH}/on?shouldActivateDisabledStrategies=true").status_code == 200
    strategy.refresh_from_db()
    assert not strategy.disabled
    assert cart.strategies.count() == 1
    assert is_on("cart", "development")


def test_unknown_flags_and_environments(api, cart):
    ProjectEnvironment.objects.filter(environment="production").delete()
    for path in (PATH.replace("development", "nope"), PATH.replace("development", "production")):
        refused(api["member"].post(f"{path}/on"), 404, "NotFoundError")
        refused(api["member"].get(path), 404, "NotFoundError")
    refused(api["member"].post(f"{PATH.replace('cart', 'nope')}/on"), 404, "NotFoundError")
    make_flag("old", archived=True)
    refused(api["member"].post(f"{PATH.replace('cart', 'old')}/on"), 404, "NotFoundError")


# Variants -------------------------------------------------------------------------------------------------


def put(client, variants):
    return client.put(f"{PATH}/variants", variants, format="json")


def test_variants_are_replaced_sorted_and_weighed(api, cart):
    red = RED | {
        "payload": {"type": "json", "value": "{}"},
        "overrides": [{"contextName": "u", "values": [7]}],
    }
    response = put(api["member"], [red, BLUE | {"weight": 1}])
    assert response.status_code == 200
    expected = [BLUE, red | {"overrides": [{"contextName": "u", "values": ["7"]}]}]
    assert response.json() == {"version": 1, "variants": expected}
    assert api["reader"].get(f"{PATH}/variants").json()["variants"] == expected
    [event] = events("feature-environment-variants-updated")
    assert (event.before, event.after) == ({"variants": []}, {"variants": expected})
    assert put(api["member"], []).json()["variants"] == []


def test_variants_by_json_patch(api, cart):
    put(api["member"], [BLUE])
    operations = [
        {"op": "add", "path": "/1", "value": RED},
        {"op": "replace", "path": "/0/name", "value": "azure"},
    ]
    response = api["member"].patch(f"{PATH}/variants", operations, format="json")
    assert [(v["name"], v["weight"]) for v in response.json()["variants"]] == [("azure", 500), ("red", 500)]


def test_all_variants_by_json_patch(api, cart):
    put(api["member"], [RED])
    operations = [
        {"op": "test", "path": "", "value": api["member"].get(f"{PATH}/variants").json()["variants"]},
        {"op": "replace", "path": "", "value": [BLUE]},
        {"op": "add", "path": "/-", "value": RED},
    ]
    response = api["member"].patch(f"{PATH}/variants", operations, format="json")
    assert [variant["name"] for variant in response.json()["variants"]] == ["blue", "red"]
    response = api["member"].patch(
        f"{PATH}/variants", [{"op": "move", "from": "/0", "path": ""}], format="json"
    )
    assert response.status_code == 400  # a variant is not a list of them


@for_each(
    ("operation", "path"),
    [
        ({"op": "replace", "path": "", "value": {"name": "blue"}}, ""),
        ({"op": "replace", "path": "", "value": None}, ""),
        ({"op": "replace", "path": "", "value": [5]}, "[0]"),
        ({"op": "remove", "path": ""}, "[0].path"),
        ({"op": "move", "from": "", "path": "/0"}, "[0].from"),
        ({"op": "test", "path": "", "value": []}, "[0].value"),
    ],
)
def test_patches_of_all_variants_that_are_refused(api, cart, operation, path):
    put(api["member"], [BLUE])
    record = refused(
        api["member"].patch(f"{PATH}/variants", [operation], format="json"), 400, "ValidationError"
    )
    assert [problem["path"] for problem in record.get("details", [{"path": ""}])] == [path]
    assert FlagEnvironment.objects.exclude(variants=[]).count() == 1


@for_each(
    ("variants", "path"),
    [
        ([BLUE, BLUE], "[1].name"),
        ([BLUE | {"color": "blue"}], "[0].color"),
        ([{"weight": 1}], "[0].name"),
    ],
)
def test_variants_that_are_refused(api, cart, variants, path):
    record = refused(put(api["member"], variants), 400, "ValidationError")
    assert [problem["path"] for problem in record["details"]] == [path]
    assert FlagEnvironment.objects.filter(variants=[]).count() == 2


# Variants in several environments -------------------------------------------------------------------------

BATCH = "/api/admin/projects/shop/features/cart/variants-batch"


def put_batch(client, variants, *environments):
    return client.put(BATCH, {"variants": variants, "environments": environments}, format="json")


def variants_by_environment(flag):
    return dict(FlagEnvironment.objects.filter(flag=flag).values_list("environment", "variants"))


def test_variants_are_replaced_in_several_environments(api, cart):
    FlagEnvironment.objects.filter(flag=cart, environment="production").update(variants=[BLUE])
    response = put_batch(api["member"], [RED, BLUE], "production", "development", "production")
    assert (response.status_code, response.json()) == (200, {"version": 1, "variants": [BLUE, RED]})
    assert variants_by_environment(cart) == {"development": [BLUE, RED], "production": [BLUE, RED]}
    recorded = events("feature-environment-variants-updated")
    assert [(event.environment, event.before) for event in recorded] == [
        ("development", {"variants": []}),
        ("production", {"variants": [BLUE]}),
    ]
    assert put_batch(api["member"], [], "production").json() == {"version": 1, "variants": []}
    assert variants_by_environment(cart) == {"development": [BLUE, RED], "production": []}


@for_each(
    ("body", "paths"),
    [
        ({}, ["variants", "environments"]),
        ({"variants": [BLUE], "environments": []}, ["environments"]),
        ({"variants": [BLUE], "environments": "production"}, ["environments"]),
        ({"variants": [BLUE], "environments": ["development", "nope"]}, ["environments[1]"]),
        ({"variants": [BLUE, BLUE], "environments": ["development"]}, ["variants[1].name"]),
        ({"variants": BLUE, "environments": ["development"]}, ["variants"]),
        ([BLUE], [""]),
    ],
)
def test_batches_that_are_refused(api, cart, body, paths):
    record = refused(api["member"].put(BATCH, body, format="json"), 400, "ValidationError")
    assert [problem["path"] for problem in record["details"]] == paths
    assert variants_by_environment(cart) == {"development": [], "production": []}


def test_batches_for_places_and_flags_that_cannot_be_changed(api, cart):
    ProjectEnvironment.objects.filter(project="shop", environment="production").delete()
    record = refused(put_batch(api["member"], [BLUE], "production"), 400, "ValidationError")
    assert record["details"][0]["message"] == "Environment production not found. Available: development."

    make_flag("old", archived=True)
    for name in ("nope", "old"):
        response = api["member"].put(
            BATCH.replace("cart", name), {"variants": [], "environments": ["production"]}
        )
        refused(response, 404, "NotFoundError")


def test_a_batch_needs_the_permission_in_each_environment(api, people, cart):
    role = Role.objects.create(name="developer", type="custom")
    RolePermission.objects.create(
        role=role, permission="UPDATE_FEATURE_ENVIRONMENT_VARIANTS", environment_id="development"
    )
    Grant.objects.create(role=role, project_id="shop", user=people["outsider"])
    assert put_batch(api["outsider"], [BLUE], "development").status_code == 200
    record = refused(put_batch(api["outsider"], [], "development", "production"), 403, "NoAccessError")
    assert record["permissions"] == ["UPDATE_FEATURE_ENVIRONMENT_VARIANTS"]
    assert len(variants_by_environment(cart)["development"]) == 1
