"""The permissions needed for each kind of import."""

import json
from typing import Any

import pytest

from projects.models import Flag
from tests.support.import_bodies import body, strategy, switch

pytestmark = pytest.mark.django_db
IMPORT = "/api/admin/features-batch/import"
VALIDATE = "/api/admin/features-batch/validate"


@pytest.mark.parametrize("who", ["admin", "owner", "member", "admin_token"])
def test_may_import(who: str, api: Any) -> None:
    assert api[who].post(IMPORT, body("one")).status_code == 200


@pytest.mark.parametrize("who", ["viewer", "reader", "editor"])
def test_sees_and_may_not(who: str, api: Any) -> None:
    response = api[who].post(IMPORT, body("one", featureStrategies=[strategy("one")]))
    record = json.loads(response.content)
    assert (response.status_code, record["name"]) == (403, "NoAccessError")
    assert record["permissions"] == ["CREATE_FEATURE_STRATEGY", "CREATE_FEATURE", "UPDATE_FEATURE"]
    report = json.loads(api[who].post(VALIDATE, body("one")).content)
    assert report["permissions"] == [
        {
            "message": "We detected you are missing the following permissions:",
            "affectedItems": ["Create feature flags", "Update feature flags"],
        }
    ]
    assert not Flag.objects.exists()


def test_who_sees_no_project_learns_of_none(api: Any) -> None:
    response = api["outsider"].post(IMPORT, body("one"))
    record = json.loads(response.content)
    assert response.status_code == 404
    assert record["message"] == "Project shop not found. You cannot see any project."


def test_without_a_key(api: Any) -> None:
    assert api["nobody"].post(IMPORT, body("one")).status_code == 401


def test_missing_permissions_come_before_wrong_values(api: Any) -> None:
    assert api["reader"].post(IMPORT, body("not a name")).status_code == 403


NEEDS = {
    "new words": (
        body(
            "one",
            contextFields=[{"name": "tier"}],
            tagTypes=[{"name": "team"}],
            featureTags=[{"featureName": "one", "tagType": "team", "tagValue": "web"}],
            segments=[{"id": 1, "name": "vip", "constraints": []}],
        ),
        ["CREATE_CONTEXT_FIELD", "CREATE_TAG_TYPE", "CREATE_SEGMENT"],
    ),
    "words that are here": (
        body(
            "one",
            contextFields=[{"name": "userId"}],
            tagTypes=[{"name": "unused"}],
            featureTags=[{"featureName": "one", "tagType": "simple", "tagValue": "web"}],
        ),
        [],
    ),
}


@pytest.mark.parametrize(("sent", "missing"), NEEDS.values(), ids=NEEDS)
def test_a_member_needs_root_permissions_for_new_words(sent: Any, missing: list[str], api: Any) -> None:
    response = api["member"].post(IMPORT, sent)
    if missing:
        assert json.loads(response.content)["permissions"] == missing
    else:
        assert response.status_code == 200, response.content


def test_replacing_variants_and_archiving_have_their_own(api: Any, people: Any) -> None:
    from groups.models import Grant, Role, RolePermission

    role = Role.objects.create(name="Careful", type="custom")
    RolePermission.objects.create(role=role, permission="UPDATE_FEATURE")
    Grant.objects.filter(user=people["member"]).update(role=role)
    first = body("one", featureStrategies=[strategy("one")])
    assert api["admin"].post(IMPORT, first).status_code == 200
    variants = [{"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}]
    sent = body(featureEnvironments=[switch("one", enabled=False, variants=variants)])
    sent["data"]["features"] = [{"name": "one", "archived": True}]
    record = json.loads(api["member"].post(IMPORT, sent).content)
    assert record["permissions"] == [
        "DELETE_FEATURE_STRATEGY",
        "UPDATE_FEATURE_ENVIRONMENT_VARIANTS",
        "DELETE_FEATURE",
    ]
