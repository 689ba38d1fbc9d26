"""An import into an environment that takes change requests becomes one, with its preview."""

from typing import Any

import orjson
import pytest

from groups.access import Caller
from importer.models import ImportRun
from importer.runs import create_run
from projects.models import Flag, ProjectEnvironment, Strategy
from releases.models import ChangeRequest
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(shop: Any, people: Any) -> ImportRun:
    """Of a file with another rollout of cart, which is on in production."""
    parameters = {"rollout": "10", "stickiness": "default", "groupId": "cart"}
    live_flag("cart", strategies=[{"name": "flexibleRollout", "parameters": parameters}])
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=1)
    strategy = {
        "name": "flexibleRollout",
        "featureName": "cart",
        "parameters": parameters | {"rollout": "50"},
    }
    body = {
        "project": "shop",
        "environment": "production",
        "data": {
            "features": [{"name": "cart", "type": "release"}],
            "featureStrategies": [strategy | {"constraints": []}],
            "featureEnvironments": [
                {"featureName": "cart", "name": "cart", "environment": "x", "enabled": True}
            ],
            "tagTypes": [],
        },
    }
    return create_run(orjson.dumps(body), caller=Caller(user=people["owner"]), file_name="cart.json")


def test_it_is_sent_for_review_with_its_preview(browse, run):
    owner = browse("owner")
    page = owner.get(f"/import/{run.id}/")
    assert "Send for review" in page.text
    kept = {"fingerprint": run.fingerprint, "do": "confirm"}
    titled = {"request_title": "Import of cart.json", "request_note": f"Plan and preview: /import/{run.id}/"}
    answer = owner.post(f"/import/{run.id}/", {**kept, **titled, "send_for_review": "yes"})
    request = ChangeRequest.objects.get()
    assert answer.url == f"/projects/shop/change-requests/{request.pk}/"
    assert (request.state, request.title) == ("In review", "Import of cart.json")
    assert request.changes.exists()
    assert Strategy.objects.get(flag__name="cart", environment="production").parameters["rollout"] == "10"
    assert f"Plan and preview: /import/{run.id}/" in page_text(owner.get(answer.url))
    run.refresh_from_db()
    assert run.state == ImportRun.State.PENDING


def test_without_a_policy_it_is_imported(browse, run):
    ProjectEnvironment.objects.update(required_approvals=None)
    assert "Send for review" not in browse("owner").get(f"/import/{run.id}/").text
    assert Flag.objects.filter(name="cart").exists()
