"""Lists of what uses a segment or context field include default strategies, stickiness and user lists."""

import pytest

from projects.models import ProjectEnvironment, Segment, StrategySegment, StrategyType
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.records import refused

CONSTRAINT = {"contextName": "plan", "operator": "IN", "values": ["pro"]}


@pytest.fixture
def beta(db):
    return Segment.objects.create(name="beta", constraints=[CONSTRAINT])


def set_default(project, **strategy):
    link = ProjectEnvironment.objects.get(project=project, environment="production")
    link.default_strategy = {
        "name": "flexibleRollout",
        "parameters": {},
        "constraints": [],
        "segments": [],
    } | strategy
    link.save()


def test_a_segment_on_a_default_strategy_is_not_deleted(api, shop, beta):
    set_default(shop, segments=[beta.pk])
    url = f"/api/admin/segments/{beta.pk}"
    record = refused(api["editor"].delete(url), 409, "ConflictError")
    assert "in use in the default strategy of shop in production" in record["message"]
    uses = api["editor"].get(f"{url}/strategies").json()
    assert uses == {
        "strategies": [],
        "defaultStrategies": [{"projectId": "shop", "environment": "production"}],
        "changeRequestStrategies": [],
    }
    shown = api["editor"].get(url).json()
    assert (shown["usedInFeatures"], shown["usedInProjects"]) == (0, 1)
    set_default(shop)
    assert api["editor"].delete(url).status_code == 204


def test_a_segment_on_a_default_strategy_is_not_moved_elsewhere_and_named_with_flags(api, shop, beta):
    set_default(shop, segments=[beta.pk])
    record = refused(
        api["admin"].put(f"/api/admin/segments/{beta.pk}", {"project": "default"}), 400, "ValidationError"
    )
    assert "other projects: shop" in record["message"]
    assert api["admin"].put(f"/api/admin/segments/{beta.pk}", {"project": "shop"}).status_code == 204

    StrategySegment.objects.create(strategy=add_strategy(make_flag("cart")), segment=beta)
    record = refused(api["editor"].delete(f"/api/admin/segments/{beta.pk}"), 409, "ConflictError")
    assert "on 1 flag: cart, and in the default strategy of shop in production" in record["message"]


def test_a_strategy_type_of_a_default_strategy_is_not_deleted(api, shop):
    StrategyType.objects.create(name="hostGroup")
    set_default(shop, name="hostGroup")
    record = refused(api["admin"].delete("/api/admin/strategies/hostGroup"), 409, "ConflictError")
    assert "default strategy of shop in production" in record["message"]


@for_each(
    ("field", "name", "strategy"),
    [
        ("plan", "flexibleRollout", {"constraints": [CONSTRAINT]}),
        ("plan", "flexibleRollout", {"parameters": {"stickiness": "plan"}}),
        ("plan", "flexibleRollout", {"variants": [{"name": "a", "weight": 1000, "stickiness": "plan"}]}),
        ("userId", "userWithId", {}),
        ("sessionId", "gradualRolloutSessionId", {}),
    ],
)
def test_a_strategy_that_reads_a_field(api, shop, field, name, strategy):
    add_strategy(make_flag("cart"), name=name, **strategy)
    [use] = api["editor"].get(f"/api/admin/context/{field}/strategies").json()["strategies"]
    assert (use["featureName"], use["strategyName"]) == ("cart", name)
    assert counted(api, field) == (1, 1)


def test_a_segment_reads_a_field_for_its_strategies_as_far_as_they_are_read(api, shop, beta):
    StrategySegment.objects.create(strategy=add_strategy(make_flag("cart")), segment=beta)
    uses = api["editor"].get("/api/admin/context/plan/strategies").json()
    assert uses["segments"] == [{"id": beta.pk, "name": "beta"}]
    assert [use["featureName"] for use in uses["strategies"]] == ["cart"]
    assert counted(api, "plan") == (1, 1)

    add_strategy(make_flag("secret", "default"), constraints=[CONSTRAINT])
    uses = api["reader"].get("/api/admin/context/plan/strategies").json()
    assert [use["featureName"] for use in uses["strategies"]] == ["cart"]


def test_default_strategies_projects_and_variants_read_a_field(api, shop, beta):
    set_default(shop, segments=[beta.pk])
    shop.default_stickiness = "plan"
    shop.save()
    cart = make_flag("cart")
    cart.environments.filter(environment="production").update(
        variants=[{"name": "a", "weight": 1000, "stickiness": "plan"}]
    )
    uses = api["editor"].get("/api/admin/context/plan/strategies").json()
    assert uses["defaultStrategies"] == [{"projectId": "shop", "environment": "production"}]
    assert uses["projects"] == [{"id": "shop"}]
    assert [(use["featureName"], use["environment"]) for use in uses["variants"]] == [("cart", "production")]
    assert counted(api, "plan") == (1, 1)


def test_odd_stored_strategies_are_passed_over(api, shop):
    add_strategy(
        make_flag("cart"), name="flexibleRollout", constraints="x", parameters=[1], variants=[1, None]
    )
    set_default(shop, segments="x", constraints=None, variants={"a": 1})
    assert counted(api, "plan") == (0, 0)


def counted(api, name):
    (field,) = [field for field in api["editor"].get("/api/admin/context").json() if field["name"] == name]
    return field["usedInFeatures"], field["usedInProjects"]


@pytest.fixture(autouse=True)
def plan(api):
    api["admin"].post("/api/admin/context", {"name": "plan"})
