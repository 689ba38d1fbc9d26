"""A request of one environment that changes what another guarded one answers says how to go on."""

from typing import Any

import pytest

from projects.models import Flag, FlagEnvironment, ProjectEnvironment, Segment
from tests.support.change_requests import SHOP, enter, reviewer, sent
from tests.support.flags import add_strategy
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)
ARCHIVE = {"feature": "cart", "action": "archiveFeature"}


@pytest.fixture
def cart(shop: Any) -> Flag:
    """On in production and development, which both need requests."""
    ProjectEnvironment.objects.filter(project="shop").update(required_approvals=1)
    flag = live_flag("cart", strategies=[{"name": "default"}])
    add_strategy(flag, "development")
    FlagEnvironment.objects.update_or_create(
        flag=flag, environment_id="development", defaults={"enabled": True}
    )
    return flag


def approved(api: Any, *changes: Any) -> dict[str, Any]:
    made = sent(api["owner"], *changes)
    assert enter(api["admin"], made, "Approved").status_code == 200
    return made


def applier(name: str = "ann", *, environment: str | None = None) -> Any:
    return reviewer(name, "APPLY_CHANGE_REQUEST", environment=environment)


def test_archiving_says_to_turn_the_flag_off_there_first(api, cart):
    made, ann = approved(api, ARCHIVE), applier()
    refused = enter(ann, made, "Applied")
    assert refused.status_code == 403
    assert refused.json()["message"].endswith(
        "This request of production also changes what development answers for cart. Nothing was saved. Turn cart off in "
        "development by a request first, or have this one applied by somebody who may skip change requests in "
        f"development. Make a request: POST {SHOP}/environments/development/change-requests."
    )
    FlagEnvironment.objects.filter(environment="development").update(enabled=False)
    assert enter(ann, made, "Applied").status_code == 200
    assert Flag.objects.get().is_archived


def test_archiving_takes_the_permission_in_all_environments(api, cart):
    """Also where another environment needs no requests, and so does not object."""
    ProjectEnvironment.objects.filter(environment="development").update(required_approvals=None)
    made = approved(api, ARCHIVE)
    for limited in (applier("eve", environment="production"), api["viewer"]):
        assert enter(limited, made, "Applied").status_code == 403
    refused = enter(applier("bob", environment="production"), made, "Applied")
    assert refused.json()["permissions"] == ["DELETE_FEATURE"]
    assert not Flag.objects.get().is_archived
    assert enter(applier(), made, "Applied").status_code == 200


def test_parents_take_the_permission_in_all_environments(api, cart):
    ProjectEnvironment.objects.filter(environment="development").update(required_approvals=None)
    live_flag("base", strategies=[{"name": "default"}])
    made = approved(api, {"feature": "cart", "action": "addDependency", "payload": {"feature": "base"}})
    refused = enter(applier("eve", environment="production"), made, "Applied")
    assert (refused.status_code, refused.json()["permissions"]) == (403, ["UPDATE_FEATURE_DEPENDENCY"])
    assert enter(applier(), made, "Applied").status_code == 200


@pytest.mark.parametrize("change", ["updateSegment", "deleteSegment"])
def test_a_segment_of_all_projects_takes_its_own_permission(api, cart, change):
    """Whoever approves requests of one project has no say in the others."""
    segment = Segment.objects.create(name="nordic", constraints=[])
    payload: dict[str, Any] = {"id": segment.pk}
    if change == "updateSegment":
        payload["constraints"] = [{"contextName": "country", "operator": "IN", "values": ["NO"]}]
    made = approved(api, {"action": change, "payload": payload})
    refused = enter(applier(), made, "Applied")
    assert (refused.status_code, refused.json()["permissions"]) == (
        403,
        [f"{change[:6].upper()}_SEGMENT"],
    )
    assert Segment.objects.get(pk=segment.pk).constraints == []
    assert enter(api["admin"], made, "Applied").status_code == 200


def test_a_segment_is_left_to_those_who_may_skip_requests(api, cart):
    segment = Segment.objects.create(name="nordic", constraints=[], project_id="shop")
    for environment in ("production", "development"):
        add_strategy(cart, environment, segments=[segment])
    constraint = {"contextName": "country", "operator": "IN", "values": ["NO"]}
    change = {"action": "updateSegment", "payload": {"id": segment.pk, "constraints": [constraint]}}
    made = approved(api, change)
    refused = enter(applier(), made, "Applied")
    assert refused.status_code == 403
    assert refused.json()["message"].endswith(
        "It can be applied by somebody who may skip change requests in development."
    )
    assert enter(api["admin"], made, "Applied").status_code == 200
    segment.refresh_from_db()
    assert segment.constraints[0]["values"] == ["NO"]
