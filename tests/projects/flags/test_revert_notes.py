"""What will not be quite what it was after a revert is said, and prevents nothing."""

from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from projects.context_fields.actions import create_context_field, update_context_field
from projects.environments.actions import create_environment, delete_environment
from projects.flags.actions import NewFlag, create_flag
from projects.flags.archive import actions as archive
from projects.flags.dependencies import actions as dependencies
from projects.models import Dependency, Project, Strategy
from projects.projects.environments import add_environment, remove_environment
from projects.strategies import actions as strategies
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db
SYSTEM = Caller.system()
PLACE = ("shop", "cart", "production")
URL = "/api/admin/projects/shop/features/cart/revert"
PAGE = "/projects/shop/features/cart/revert"


@pytest.fixture
def cart(shop: Project) -> None:
    create_flag("shop", NewFlag(name="cart"), caller=SYSTEM)
    create_flag("shop", NewFlag(name="parent"), caller=SYSTEM)


def last() -> int:
    return AuditEvent.objects.filter(feature="cart").latest("id").pk


def noted(api: Any, event: int) -> dict[str, str]:
    """The notes of the preview by path. There are no problems."""
    parts = api["member"].get(URL, {"event": event}).json()["parts"]
    assert not any(part["problems"] for part in parts)
    return {note["path"]: note["message"] for part in parts for note in part["notes"]}


def test_values_that_are_no_longer_legal(api: Any, browse: Any, cart: None) -> None:
    legal = [{"value": "gold"}, {"value": "silver"}]
    create_context_field({"name": "plan", "legal_values": legal}, caller=SYSTEM)
    constraint = {"contextName": "plan", "operator": "IN", "values": ["gold", "silver"]}
    given = {"name": "default", "constraints": [constraint]}
    strategy = strategies.add_strategy(*PLACE, given, caller=SYSTEM)["id"]
    event = last()
    strategies.remove_strategy(*PLACE, strategy, caller=SYSTEM)
    update_context_field("plan", {"legal_values": [{"value": "gold"}]}, caller=SYSTEM)

    path = "environments.production.strategies[0].constraints[0].values[1]"
    message = "silver is not a legal value of plan. Available: gold"
    assert noted(api, event) == {path: message}
    assert f"Note: {message}." in page_text(browse("member").get(PAGE, {"event": event}))
    assert api["member"].post(URL, {"event": event}, format="json").status_code == 200
    assert Strategy.objects.get().constraints == [constraint]
    refused = strategies_url_post(api, given)
    assert refused.status_code == 400


def strategies_url_post(api: Any, strategy: dict[str, Any]) -> Any:
    url = URL.replace("revert", "environments/production/strategies")
    return api["member"].post(url, strategy, format="json")


def test_a_parent_that_is_another_flag_now(api: Any, browse: Any, cart: None) -> None:
    dependencies.add_dependency("shop", "cart", {"feature": "parent"}, caller=SYSTEM)
    event = last()
    assert noted(api, event) == {}
    dependencies.clear_dependencies("shop", "cart", caller=SYSTEM)
    assert noted(api, event) == {}
    archive.archive_flags("shop", ["parent"], caller=SYSTEM)
    archive.delete_flags("shop", ["parent"], caller=SYSTEM)
    create_flag("shop", NewFlag(name="parent"), caller=SYSTEM)

    message = "flag parent has been deleted and created again since"
    assert noted(api, event) == {"dependencies[0]": message}
    assert f"Note: {message}." in page_text(browse("member").get(PAGE, {"event": event}))
    assert api["member"].post(URL, {"event": event}, format="json").status_code == 200
    assert Dependency.objects.get().parent.name == "parent"


def test_an_environment_that_is_another_one_now(api: Any, cart: None) -> None:
    create_environment({"name": "extra", "type": "test"}, caller=SYSTEM)
    add_environment("shop", "extra", caller=SYSTEM)
    strategies.add_strategy("shop", "cart", "extra", {"name": "default"}, caller=SYSTEM)
    event = last()
    remove_environment("shop", "extra", caller=SYSTEM)
    delete_environment("extra", caller=SYSTEM)
    create_environment({"name": "extra", "type": "test"}, caller=SYSTEM)
    add_environment("shop", "extra", caller=SYSTEM)

    assert noted(api, event) == {
        "environments.extra": "environment extra has been deleted and created again since"
    }
    assert api["member"].post(URL, {"event": event}, format="json").status_code == 200
    assert Strategy.objects.get().environment_id == "extra"
