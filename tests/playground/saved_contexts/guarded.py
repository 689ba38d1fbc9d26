"""A project that refuses changes that break an expectation, and what is expected there."""

from typing import Any

import pytest

from groups.access import Caller, Rights
from playground.models import SavedContext
from playground.saved_contexts.enforcement import read_flag_projects
from playground.saved_contexts.expectations import check_expectations, list_expectations
from projects.models import Flag, Segment, Strategy
from tests.support import import_bodies
from tests.support.flags import depend
from tests.support.playground import live_flag

WHO = Caller.system()
PLACE = ("shop", "cart", "production")
FEATURES = "/api/admin/projects/shop/features"
OFF = f"{FEATURES}/cart/environments/production/off"
NOBODY = [{"contextName": "userId", "operator": "IN", "values": ["7"]}]
BLUE, GREEN = ([{"name": name, "weight": 1000, "weightType": "variable"}] for name in ("blue", "green"))


def expected(flag: str = "cart", enabled: bool = True, variant: str | None = None) -> dict[str, Any]:
    return {"flag": flag, "environment": "production", "enabled": enabled, "variant": variant}


def persona(*expectations: dict[str, Any], name: str = "Ada", project: str | None = "shop") -> SavedContext:
    """Stated by somebody who may change the flags."""
    return SavedContext.objects.create(
        name=name,
        project_id=project,
        context={"userId": "42"},
        expectations=list(expectations),
        enforced_in={} if project else read_flag_projects(expectations),
    )


@pytest.fixture
def cart(shop: Any) -> Flag:
    """On for everybody through a segment, as Ada expects it; `child` depends on it. The project refuses changes."""
    shop.refuse_broken_expectations = True
    shop.save()
    everybody = Segment.objects.create(name="everybody", constraints=[])
    flag = live_flag("cart", strategies=[{"name": "default", "segments": [everybody]}], variants=BLUE)
    depend(live_flag("child"), flag)
    live_flag("other")
    persona(expected(variant="blue"), expected("child"), expected("off", enabled=False))
    return flag


def strategy() -> str:
    return str(Strategy.objects.filter(flag__name="cart").order_by("sort_order")[0].pk)


def failing() -> list[str]:
    found = check_expectations(WHO, list_expectations(WHO))
    return [one.expectation.flag for one in found if not one.met]


def failing_in(project: str) -> set[tuple[str, str, str]]:
    """What the project enforces and does not give: (saved context, flag, environment)."""
    reader = Caller(rights=Rights(False, False, frozenset({project}), frozenset()))
    enforced = [one for one in list_expectations(WHO) if one.enforced_in == project]
    found = (each for each in check_expectations(reader, enforced, reasons=False) if not each.met)
    return {(one.saved.name, one.flag, one.environment) for one in (each.expectation for each in found)}


def an_import(name: str = "cart", enabled: bool = False) -> Any:
    data = {
        "featureStrategies": [import_bodies.strategy(name, name="default")],
        "featureEnvironments": [import_bodies.switch(name, enabled=enabled, variants=BLUE)],
    }
    return import_bodies.body(name, environment="production", **data)
