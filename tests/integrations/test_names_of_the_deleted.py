"""What is kept for a name does not serve a successor of the same name: integrations, rules, saved contexts."""

from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from integrations.addons.actions import create_integration, update_integration
from integrations.addons.queries import make_integration_document
from integrations.deliveries.sender import relay
from integrations.models import Delivery, Integration, SignalRule, SignalSource
from playground.models import SavedContext
from projects.environments.actions import create_environment, delete_environment
from projects.flags.actions import NewFlag, create_flag
from projects.flags.archive.actions import archive_flags, delete_flags
from tests.support.flags import make_flag
from tests.support.page_text import page_text

SYSTEM = Caller.system()
VALUES = {
    "provider": "webhook",
    "description": "Deploys",
    "enabled": True,
    "parameters": {"url": "https://hooks.example.com/shop"},
    "events": ["feature-created", "project-deleted", "feature-deleted"],
    "projects": ["shop"],
    "environments": [],
    "tags": [],
    "productionOnly": False,
    "onlyIfUsersChange": False,
}


@pytest.fixture
def webhook(shop: Any) -> Integration:
    relay()
    return create_integration(VALUES, caller=SYSTEM)


def told() -> list[str]:
    from flagadmin.core.audit.models import AuditEvent

    relay()
    ids = Delivery.objects.order_by("id").values_list("event_id", flat=True)
    types = dict(AuditEvent.objects.values_list("id", "type"))
    return [types[event] for event in ids if event]


def delete_shop(api: Any) -> None:
    assert api["admin"].delete("/api/admin/projects/shop").status_code in (200, 204)


def test_an_integration_is_told_of_the_deletion_and_not_of_the_successor(
    api: Any, webhook: Integration
) -> None:
    make_flag("old", archived=True)
    delete_shop(api)
    api["admin"].post("/api/admin/projects", {"id": "shop", "name": "Another shop"})
    create_flag("shop", NewFlag(name="cart"), caller=SYSTEM)

    assert told() == ["feature-deleted", "project-deleted"]
    webhook.refresh_from_db()
    assert make_integration_document(webhook)["deletedProjects"] == ["shop"]


def test_saving_it_again_means_the_project_that_has_the_name_now(
    api: Any, browse: Any, webhook: Integration
) -> None:
    delete_shop(api)
    update_integration(webhook.pk, VALUES, caller=SYSTEM)  # no project has the name now
    api["admin"].post("/api/admin/projects", {"id": "shop", "name": "Another shop"})
    page = page_text(browse("admin").get(f"/integrations/{webhook.pk}/"))
    assert "Deleted, and created again since: shop" in page
    update_integration(webhook.pk, VALUES, caller=SYSTEM)
    create_flag("shop", NewFlag(name="guide"), caller=SYSTEM)

    assert told() == ["project-deleted", "feature-created"]


def test_an_environment_with_the_same_name(api: Any, shop: Any) -> None:
    api["admin"].post("/api/admin/environments", {"name": "qa", "type": "test"})
    values = {**VALUES, "environments": ["qa"], "events": ["feature-environment-enabled"]}
    create_integration(values, caller=SYSTEM)
    make_flag("cart")
    delete_environment("qa", caller=SYSTEM)
    api["admin"].post("/api/admin/environments", {"name": "qa", "type": "test"})
    api["admin"].post("/api/admin/projects/shop/environments", {"environment": "qa"})
    answer = api["admin"].post("/api/admin/projects/shop/features/cart/environments/qa/on")

    assert answer.status_code == 200, answer.text
    assert told() == []


@pytest.fixture
def rule(webhook: Integration) -> SignalRule:
    make_flag("cart")
    source = SignalSource.objects.create(name="Alerts", kind="generic", token_hash="0")
    return SignalRule.objects.create(
        source=source, name="Stop", match={"a": "*"}, project="shop", flag="cart",
        environment="development", then="turnOff", enabled=True,
    )  # fmt: skip


def test_a_rule_for_a_deleted_flag_is_disabled(rule: SignalRule, api: Any, browse: Any) -> None:
    archive_flags("shop", ["cart"], caller=SYSTEM)
    asked = browse("admin").get("/projects/shop/features/delete?name=cart")
    assert "Rule Stop of Alerts" in page_text(asked), asked.status_code
    delete_flags("shop", ["cart"], caller=SYSTEM)

    rule.refresh_from_db()
    assert rule.enabled is False


def test_what_is_expected_of_a_deleted_flag_is_not_enforced_for_its_successor(shop: Any) -> None:
    make_flag("cart", archived=True)
    kept = make_flag("guide")
    expectations = [
        {"flag": name, "environment": "development", "enabled": True} for name in ("cart", kept.name)
    ]
    saved = SavedContext.objects.create(
        name="Beta", expectations=expectations, enforced_in={"cart": "shop", "guide": "shop"}
    )
    delete_flags("shop", ["cart"], caller=SYSTEM)

    saved.refresh_from_db()
    assert saved.enforced_in == {"guide": "shop"}
    assert saved.expectations == expectations


@pytest.mark.parametrize("project", ["shop", None])
def test_an_environment_does_not_inherit_expectations(
    api: Any, browse: Any, shop: Any, project: str | None
) -> None:
    create_environment({"name": "qa", "type": "test"}, caller=SYSTEM)
    for name in ("cart", "guide"):
        make_flag(name)
    there = [{"flag": name, "environment": "qa", "enabled": True} for name in ("cart", "guide")]
    elsewhere = {"flag": "guide", "environment": "development", "enabled": True}
    enforced = {"cart": "shop", "guide": "shop"} if project is None else {}
    saved = SavedContext.objects.create(
        name="Beta", project_id=project, expectations=[*there, elsewhere], enforced_in=enforced
    )
    SavedContext.objects.create(name="Other", expectations=[elsewhere])
    page = page_text(browse("admin").get("/environments/qa/delete"))
    assert "to this environment only: The expectations of saved context Beta" in page
    assert "Other" not in page
    delete_environment("qa", caller=SYSTEM)
    create_environment({"name": "qa", "type": "test"}, caller=SYSTEM)

    saved.refresh_from_db()
    assert saved.expectations == [elsewhere]
    assert saved.enforced_in == ({"guide": "shop"} if project is None else {})
    [event] = AuditEvent.objects.filter(type="saved-context-updated")
    assert (event.subject, event.after["expectations"]) == ("Beta", [elsewhere | {"enforcedIn": "shop"}])


def test_deletion_pages_name_the_integrations(api: Any, browse: Any, webhook: Integration) -> None:
    api["admin"].post("/api/admin/environments", {"name": "qa", "type": "test"})
    update_integration(webhook.pk, {**VALUES, "environments": ["qa"]}, caller=SYSTEM)
    assert f"Webhook {webhook.pk}" in page_text(browse("admin").get("/projects/shop/delete/"))
    assert f"to this environment only: Webhook {webhook.pk}" in page_text(
        browse("admin").get("/environments/qa/delete")
    )
