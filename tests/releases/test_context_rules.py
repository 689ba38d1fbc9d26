"""Saved contexts by which approvals are counted: who may not skip requests does not change what rules read of them."""

from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from playground.models import SavedContext
from projects.models import Flag, ProjectEnvironment
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/api/admin/playground/contexts"
EXPECTED = {"flag": "cart", "environment": "production", "enabled": True, "variant": None, "payload": None}
OTHER = EXPECTED | {"environment": "development"}


@pytest.fixture
def cart(shop: Any) -> Flag:
    return live_flag("cart", strategies=[{"name": "default"}])


def guard(*rules: dict[str, Any]) -> None:
    links = ProjectEnvironment.objects.filter(project="shop", environment="production")
    links.update(required_approvals=1, approval_rules=list(rules))


def rule(condition: str, approvals: int) -> dict[str, Any]:
    return {"condition": condition, "requiredApprovals": approvals}


def saved(project: str | None = "shop", **fields: Any) -> SavedContext:
    return SavedContext.objects.create(
        name="Ola", project_id=project, context={"userId": "42"}, **{"expectations": [EXPECTED]} | fields
    )


def delete(by: Any, key: int) -> Any:
    return by.delete(f"{URL}/{key}")


def edit(by: Any, key: int) -> Any:
    return by.put(f"{URL}/{key}", {"name": "Ola", "context": {"userId": "7"}}, format="json")


def expect_nothing(by: Any, key: int) -> Any:
    body = {"name": "Ola", "context": {"userId": "42"}, "expectations": []}
    return by.put(f"{URL}/{key}", body, format="json")


WAYS = {
    ("changesSavedContext", "delete"): delete,
    ("changesSavedContext", "edit"): edit,
    ("breaksExpectation", "delete"): delete,
    ("breaksExpectation", "edit"): edit,
    ("breaksExpectation", "expect nothing"): expect_nothing,
}


@pytest.mark.parametrize(("condition", "way"), WAYS)
@pytest.mark.parametrize("project", ["shop", None])
def test_what_asks_for_more_approvals_stays(api, cart, condition, way, project):
    guard(rule(condition, 2))
    kept = saved(project)
    by = "owner" if project else "editor"
    refused = WAYS[condition, way](api[by], kept.pk)
    assert (refused.status_code, refused.json().get("permissions")) == (403, ["SKIP_CHANGE_REQUEST"])
    assert "of Ola, which approval rules of production in project shop depend on" in refused.json()["message"]
    same = SavedContext.objects.get()
    assert (same.context, same.expectations) == (kept.context, kept.expectations)


def test_who_may_skip_requests_changes_it_and_that_is_recorded(api, cart):
    guard(rule("changesSavedContext", 2))
    assert delete(api["admin"], saved().pk).status_code == 204
    event = AuditEvent.objects.get(type="change-request-skipped")
    assert (event.project, event.environment) == ("shop", "production")


def test_what_no_rule_reads_comes_and_goes(api, cart):
    guard(rule("breaksExpectation", 2))
    kept = saved(expectations=[OTHER])
    assert expect_nothing(api["owner"], kept.pk).status_code == 200
    assert edit(api["owner"], kept.pk).status_code == 200
    body = {"name": "Kari", "project": "shop", "context": {"userId": "8"}, "expectations": [EXPECTED]}
    assert api["owner"].post(URL, body, format="json").status_code == 201
    guard(rule("changesSavedContext", 2))
    assert (
        api["owner"]
        .put(f"{URL}/{kept.pk}", {"name": "Renamed", "context": {"userId": "7"}}, format="json")
        .status_code
        == 200
    )


def test_one_that_asks_for_fewer_does_not_come(api, cart):
    guard(rule("changesSavedContext", 0))
    body = {"name": "Kari", "project": "shop", "context": {"userId": "8"}}
    assert api["owner"].post(URL, body, format="json").status_code == 403
    assert not SavedContext.objects.exists()


def test_an_import_does_not_change_it_either(api, cart):
    guard(rule("changesSavedContext", 2))
    saved()
    lists = ("features", "featureStrategies", "featureEnvironments", "featureTags", "tagTypes")
    data = {
        **{name: [] for name in lists},
        "savedContexts": [{"name": "Ola", "project": "shop", "context": {"userId": "7"}}],
    }
    body = {"project": "shop", "environment": "development", "data": data}
    refused = api["owner"].post("/api/admin/features-batch/import", body, format="json")
    assert (refused.status_code, SavedContext.objects.get().context) == (403, {"userId": "42"})
