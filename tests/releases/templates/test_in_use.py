"""What release templates and plans will need cannot be removed."""

from typing import Any

import pytest

from projects.models import Segment, StrategyType
from releases.models import ReleasePlan
from tests.support.cast import make_project
from tests.support.playground import live_flag

TEMPLATES = "/api/admin/release-plan-templates"
SHOP = "/api/admin/projects/shop"
PLANS = f"{SHOP}/features/cart/environments/production/release-plans"


@pytest.fixture
def segment(shop: Any) -> Segment:
    return Segment.objects.create(name="germans", constraints=[])


def make_template(api: Any, **strategy: Any) -> Any:
    milestone = {"name": "Some", "strategies": [{"name": "default"} | strategy]}
    body = {"name": "Careful", "milestones": [{"name": "None"}, milestone]}
    return api["admin"].post(TEMPLATES, body, format="json").json()


def test_a_segment_of_a_template_is_not_deleted(api, segment):
    template = make_template(api, segments=[segment.pk])
    url = f"/api/admin/segments/{segment.pk}"
    refused = api["admin"].delete(url)
    assert (refused.status_code, refused.json()["message"]) == (
        409,
        "Segment germans is in use in release template Careful. Remove it there first.",
    )
    assert api["admin"].post(f"{TEMPLATES}/archive/{template['id']}").status_code == 200
    assert api["admin"].delete(url).status_code == 204


def test_a_segment_of_a_later_milestone_is_not_deleted(api, segment):
    live_flag("cart", strategies=[{"name": "default"}])
    template = make_template(api, segments=[segment.pk])
    plan = api["admin"].post(PLANS, {"templateId": template["id"]}, format="json").json()
    assert api["admin"].delete(f"{TEMPLATES}/{template['id']}").status_code == 200
    url = f"/api/admin/segments/{segment.pk}"
    refused = api["admin"].delete(url)
    assert refused.json()["message"] == (
        "Segment germans is in use in the release plan of cart in production. Remove it there first."
    )
    ReleasePlan.objects.filter(pk=plan["id"]).update(state=ReleasePlan.State.DONE)
    assert api["admin"].delete(url).status_code == 204


def test_a_strategy_type_of_a_template_is_not_deleted(api, shop):
    StrategyType.objects.create(name="staff")
    make_template(api, name="staff")
    refused = api["admin"].delete("/api/admin/strategies/staff")
    assert (refused.status_code, refused.json()["message"]) == (
        409,
        "Strategy type staff is in use in release template Careful. Change these, or deprecate the type.",
    )


def test_a_segment_of_a_template_of_all_projects_stays_one_of_all(api, segment):
    make_template(api, segments=[segment.pk])
    body = {"name": "germans", "project": "shop", "constraints": []}
    refused = api["admin"].put(f"/api/admin/segments/{segment.pk}", body, format="json")
    assert refused.status_code == 400
    assert refused.json()["message"] == (
        "project: the segment is used outside this project in release template Careful"
    )


def test_a_flag_is_not_moved_away_from_a_segment_of_a_later_milestone(api, shop):
    live_flag("cart", strategies=[{"name": "default"}])
    make_project("docs")
    segment = Segment.objects.create(name="germans", project=shop, constraints=[])
    milestones = [
        {"name": "None"},
        {"name": "Some", "strategies": [{"name": "default", "segments": [segment.pk]}]},
    ]
    body = {"name": "Careful", "milestones": milestones}
    template = api["admin"].post(f"{SHOP}/release-templates", body, format="json").json()
    plan = api["admin"].post(PLANS, {"templateId": template["id"]}, format="json").json()
    move = {"newProjectId": "docs"}
    refused = api["admin"].post(f"{SHOP}/features/cart/changeProject", move, format="json")
    assert refused.status_code == 403
    assert refused.json()["message"] == (
        "cart cannot be moved to docs: segment germans belongs to project shop."
    )
    assert api["admin"].delete(f"{PLANS}/{plan['id']}").status_code == 200
    assert api["admin"].post(f"{SHOP}/features/cart/changeProject", move, format="json").status_code == 200
