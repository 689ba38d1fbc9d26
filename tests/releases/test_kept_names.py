"""Code asks by name: a guarded flag is neither moved away while it is off nor made anew elsewhere, and turned on there."""

from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.models import Grant
from groups.permissions import BuiltIn
from projects.models import Flag, ProjectEnvironment
from tests.support.cast import make_project
from tests.support.change_requests import SHOP, guarded
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)
DOCS = "/api/admin/projects/docs"


@pytest.fixture
def cart(shop: Any, people: Any) -> Flag:
    """A flag of the guarded shop that is off. The owner owns both projects."""
    guarded(1)
    Grant.objects.create(role_id=BuiltIn.OWNER, project=make_project("docs"), user=people["owner"])
    return live_flag("cart", enabled=False)


def move(by: Any, project: str = "docs") -> Any:
    return by.post(f"{SHOP}/features/cart/changeProject", {"newProjectId": project}, format="json")


def delete(by: Any) -> None:
    assert by.delete(f"{SHOP}/features/cart").status_code == 202
    assert by.delete("/api/admin/archive/cart").status_code == 200


def create(by: Any, project: str = "docs") -> Any:
    return by.post(f"/api/admin/projects/{project}/features", {"name": "cart"}, format="json")


def clone(by: Any) -> Any:
    live_flag("other", "docs", enabled=False)
    return by.post(f"{DOCS}/features/other/clone", {"name": "cart"}, format="json")


def bring(by: Any) -> Any:
    data = {
        "features": [{"name": "cart", "type": "release"}],
        "featureStrategies": [],
        "featureEnvironments": [],
        "featureTags": [],
        "tagTypes": [],
    }
    body = {"project": "docs", "environment": "development", "data": data}
    return by.post("/api/admin/features-batch/import", body, format="json")


def test_a_guarded_flag_is_not_moved_away_while_it_is_off(api, cart):
    refused = move(api["owner"])
    assert (refused.status_code, refused.json()["permissions"]) == (403, ["SKIP_CHANGE_REQUEST"])
    assert (
        "It is in project shop, where changes of production need a change request"
        in refused.json()["message"]
    )
    assert Flag.objects.get().project_id == "shop"


def test_guarding_the_other_project_too_opens_no_way(api, cart):
    """Whoever owns it could end its guard afterwards."""
    ProjectEnvironment.objects.filter(project="docs").update(required_approvals=1)
    assert move(api["owner"]).status_code == 403


def test_who_may_skip_requests_moves_it(api, cart):
    assert move(api["admin"]).status_code == 200
    [event] = AuditEvent.objects.filter(type="change-request-skipped")
    assert (event.project, event.environment, event.feature) == ("shop", "production", "cart")


@pytest.mark.parametrize("way", [create, clone, bring])
def test_a_deleted_flag_is_not_made_anew_elsewhere(api, cart, way):
    delete(api["owner"])
    refused = way(api["owner"])
    assert (refused.status_code, refused.json().get("permissions")) == (403, ["SKIP_CHANGE_REQUEST"])
    assert "It was deleted in project shop" in refused.json()["message"]
    assert not Flag.objects.filter(name="cart").exists()


def test_it_is_made_anew_where_it_was(api, cart):
    delete(api["owner"])
    assert create(api["owner"], "shop").status_code == 201


def test_other_names_and_unguarded_projects_are_free(api, cart):
    guarded(None)
    delete(api["owner"])
    assert create(api["owner"]).status_code == 201
    guarded(1)
    other = api["owner"].post(f"{DOCS}/features", {"name": "new"}, format="json")
    assert other.status_code == 201
