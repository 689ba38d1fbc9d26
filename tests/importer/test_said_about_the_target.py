"""What an import says about the environment and the parents that it meets."""

from typing import Any

from groups.access import Caller
from importer.body.schemas import read_body
from importer.plan.build import plan_import
from projects.models import Environment, Flag
from tests.support.flags import make_flag
from tests.support.import_bodies import body, strategy, switch

IMPORT = "/api/admin/features-batch/import"
VALIDATE = "/api/admin/features-batch/validate"


def warnings(api: Any, document: Any) -> str:
    answer = api["admin"].post(VALIDATE, document).json()
    assert answer["errors"] == []
    return str(answer["warnings"])


def test_an_environment_that_is_switched_off(api: Any, shop: Any) -> None:
    assert "is switched off" not in warnings(api, body("cart"))
    Environment.objects.filter(name="development").update(enabled=False)
    assert "Environment development is switched off" in warnings(api, body("cart"))


def test_a_dependency_on_a_variant_that_no_parent_has(api: Any, shop: Any) -> None:
    blue = {"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "default"}
    make_flag("stored", variants=[blue])
    needs = [
        {
            "feature": "cart",
            "dependencies": [{"feature": "stored", "enabled": True, "variants": ["blue", "green"]}],
        }
    ]

    said = warnings(api, body("cart", dependencies=needs))

    assert "cart: it requires variant green of stored" in said
    assert "variant blue" not in said


def test_a_flag_type_that_nobody_can_choose_here(api: Any, shop: Any) -> None:
    document = body("cart", "guide", "menu", "zoom", "known")
    for flag in document["data"]["features"]:
        flag["type"] = "kill-switch" if flag["name"] == "known" else "relase"
    said = warnings(api, document)
    assert (
        "Flag type relase of cart, guide, menu and 1 more is unknown here, and is kept. Known: experiment,"
        in said
    )

    assert api["admin"].post(IMPORT, document).status_code == 200
    assert Flag.objects.get(name="cart").type == "relase"
    assert "Flag type" not in warnings(api, document)


def test_flags_that_get_the_default_strategy(api: Any, shop: Any) -> None:
    """Those that are on without a strategy: not one to whose own strategies the file adds another."""
    own = body("both", featureStrategies=[strategy("both")])
    assert api["admin"].post(IMPORT, own).status_code == 200
    document = body(
        "bare",
        "off",
        "strict",
        featureStrategies=[strategy("strict"), strategy("both", title="Added")],
        featureEnvironments=[switch("bare"), switch("strict"), switch("both"), switch("off", False)],
    )

    plan = plan_import(read_body(document), caller=Caller.system())

    assert len(plan.flags["both"].after["strategies"]) == 2
    assert plan.defaulted == ["bare"]
    assert "They get the default strategy" in warnings(api, document)
