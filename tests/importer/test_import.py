"""Importing a valid body stores everything in it."""

import json

import pytest

from projects.models import Flag, FlagEnvironment, Strategy, TagType
from tests.support.import_bodies import body, strategy, switch

IMPORT, VALIDATE = "/api/admin/features-batch/import", "/api/admin/features-batch/validate"

pytestmark = pytest.mark.django_db


def test_answers_200_without_a_body(api):
    response = api["admin"].post(IMPORT, body("one"))
    assert response.status_code == 200, response.content
    assert response.content == b""
    flag = Flag.objects.get(name="one")
    assert (flag.project_id, flag.type, flag.archived_at) == ("shop", "release", None)
    assert {e.environment_id: e.enabled for e in flag.environments.all()} == {
        "development": False,
        "production": False,
    }


def test_stores_every_part(api):
    document = body(
        "parent",
        featureStrategies=[
            strategy("child", constraints=[{"contextName": "userId", "operator": "IN", "values": [1, "2"]}]),
            strategy("child", title="second", disabled=True),
        ],
        featureEnvironments=[
            switch(
                "child",
                variants=[
                    {"name": "b", "weight": 1, "weightType": "variable", "stickiness": "default"},
                    {"name": "a", "weight": 1, "weightType": "variable", "stickiness": "default"},
                ],
            )
        ],
        tagTypes=[{"name": "team", "color": "#00FF00"}],
        featureTags=[{"featureName": "child", "tagType": "team", "tagValue": "payments"}],
        dependencies=[{"feature": "child", "dependencies": [{"feature": "parent"}]}],
        links=[{"feature": "child", "links": [{"url": "example.com/x"}]}],
        contextFields=[{"name": "plan", "legalValues": [{"value": "gold"}]}],
    )
    document["data"]["features"].append(
        {"name": "child", "type": "experiment", "description": "d", "stale": "true"}
    )
    response = api["admin"].post(IMPORT, document)
    assert response.status_code == 200, response.content
    child = Flag.objects.get(name="child")
    assert (child.type, child.description, child.stale) == ("experiment", "d", True)
    first, second = Strategy.objects.filter(flag=child)
    assert first.parameters == {"rollout": "100", "stickiness": "default", "groupId": "child"}
    assert first.constraints == [{"contextName": "userId", "operator": "IN", "values": ["1", "2"]}]
    assert (second.title, second.disabled, second.sort_order) == ("second", True, 1)
    place = FlagEnvironment.objects.get(flag=child, environment="development")
    assert place.enabled
    assert [(v["name"], v["weight"]) for v in place.variants] == [("a", 500), ("b", 500)]
    assert TagType.objects.get(name="team").color == "#00FF00"
    assert [str(tag) for tag in child.tags.all()] == ["team:payments"]
    assert [link.url for link in child.links.all()] == ["https://example.com/x"]
    assert [parent.parent.name for parent in child.parents.all()] == ["parent"]


@pytest.mark.parametrize("url", [IMPORT, VALIDATE])
def test_a_byte_order_mark_is_skipped(api, url):
    text = b"\xef\xbb\xbf" + json.dumps(body("cart")).encode()
    answer = api["admin"].generic("POST", url, text, content_type="application/json")
    assert answer.status_code == 200, answer.content
    assert Flag.objects.filter(name="cart").exists() == (url == IMPORT)
