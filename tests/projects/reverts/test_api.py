"""GET and POST /api/admin/events/:id/revert: a change is taken back, and what came later stays."""

from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from projects.flags.actions import NewFlag, create_flag
from projects.models import Flag, Project, StrategyType
from tests.support.cast import make_project
from tests.support.for_each import for_each

pytestmark = pytest.mark.django_db
FEATURES = "/api/admin/projects/shop/features"
CART = f"{FEATURES}/cart"
PRODUCTION = f"{CART}/environments/production"
SCHEMA = {"type": "object"}
VARIANT = {"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "default"}


def url(event: int | None = None) -> str:
    return f"/api/admin/events/{event or AuditEvent.objects.latest('id').pk}/revert"


def rollout(share: str, **fields: Any) -> dict[str, Any]:
    parameters = {"rollout": share, "stickiness": "default", "groupId": "cart"}
    return {"name": "flexibleRollout", "parameters": parameters, "constraints": [], **fields}


@pytest.fixture
def member(api: Any, shop: Project) -> Any:
    """Flags cart, on for 10 % in production, and gift."""
    client = api["member"]
    for name in ("cart", "gift"):
        assert client.post(FEATURES, {"name": name}, format="json").status_code == 201
    assert client.post(f"{PRODUCTION}/strategies", rollout("10"), format="json").status_code == 200
    assert client.post(f"{PRODUCTION}/on").status_code == 200
    return client


def strategy(member: Any, share: str = "10") -> str:
    stored = member.get(f"{PRODUCTION}/strategies").json()
    return str(next(each["id"] for each in stored if each["parameters"]["rollout"] == share))


def seen(member: Any, name: str = "cart") -> Any:
    answer = member.get(f"{FEATURES}/{name}")
    if answer.status_code == 404:
        return "archived"
    document = answer.json()
    document["tags"] = member.get(f"/api/admin/features/{name}/tags").json()
    document["schema"] = member.get(f"{FEATURES}/{name}/payload-schema").json()
    return {key: value for key, value in document.items() if key not in ("lastSeenAt", "lifecycle")}


CHANGES = {
    "off": lambda member: member.post(f"{PRODUCTION}/off"),
    "on, with the default strategy": lambda member: member.post(f"{CART}/environments/development/on"),
    "strategy added": lambda member: member.post(f"{PRODUCTION}/strategies", rollout("20"), format="json"),
    "strategy changed": lambda member: member.put(
        f"{PRODUCTION}/strategies/{strategy(member)}", rollout("50", title="Half"), format="json"
    ),
    "strategy removed, so off": lambda member: member.delete(f"{PRODUCTION}/strategies/{strategy(member)}"),
    "variants": lambda member: member.put(f"{PRODUCTION}/variants", [VARIANT], format="json"),
    "details": lambda member: member.put(
        CART, {"name": "cart", "description": "Of goods", "type": "experiment"}, format="json"
    ),
    "stale": lambda member: member.post(f"{CART[: -len('/features/cart')]}/stale",
                                        {"features": ["cart"], "stale": True}, format="json"),
    "dependency": lambda member: member.post(f"{CART}/dependencies", {"feature": "gift"}, format="json"),
    "tag": lambda member: member.post(
        "/api/admin/features/cart/tags", {"type": "simple", "value": "shop"}, format="json"
    ),
    "payload schema": lambda member: member.put(f"{CART}/payload-schema", {"schema": SCHEMA}, format="json"),
    "archived": lambda member: member.delete(CART),
}  # fmt: skip


@for_each("change", CHANGES)
def test_a_change_is_taken_back_and_made_again(member, change):
    before = seen(member)
    assert CHANGES[change](member).status_code < 300
    after = seen(member)
    assert after != before

    preview = member.get(url())
    assert preview.status_code == 200
    assert (preview.json()["problems"], preview.json()["refusal"]) == ([], None)
    assert seen(member) == after  # it changes nothing
    done = member.post(url(), {}, format="json")
    assert (done.status_code, done.json()["problems"]) == (200, [])
    assert seen(member) == before

    again = member.post(url(), {}, format="json")
    assert again.status_code == 200
    assert seen(member) == after


def test_what_came_later_stays(member):
    member.put(f"{PRODUCTION}/strategies/{strategy(member)}", rollout("50"), format="json")
    event = AuditEvent.objects.latest("id").pk
    member.post(f"{PRODUCTION}/strategies", rollout("33"), format="json")
    member.put(f"{PRODUCTION}/variants", [VARIANT], format="json")

    assert member.post(url(event), {}, format="json").status_code == 200

    place = next(each for each in seen(member)["environments"] if each["name"] == "production")
    assert sorted(each["parameters"]["rollout"] for each in place["strategies"]) == ["10", "33"]
    assert [variant["name"] for variant in place["variants"]] == ["blue"]


def test_what_was_changed_again_is_refused(member):
    member.put(f"{PRODUCTION}/strategies/{strategy(member)}", rollout("50"), format="json")
    event = AuditEvent.objects.latest("id").pk
    member.put(f"{PRODUCTION}/strategies/{strategy(member, '50')}", rollout("60"), format="json")
    before = seen(member)

    refused = member.post(url(event), {}, format="json")

    assert (refused.status_code, refused.json()["name"]) == (409, "ConflictError")
    assert (
        "A strategy in production of cart has been changed since, by member on" in refused.json()["message"]
    )
    assert member.get(url(event)).json()["problems"] == refused.json()["details"]
    assert seen(member) == before


def test_a_bulk_change_is_reverted_whole_or_for_one_flag(member):
    both = {"features": ["cart", "gift"], "stale": True}
    member.post("/api/admin/projects/shop/stale", both, format="json")
    event = AuditEvent.objects.latest("id").pk
    done = member.post(url(event), {"feature": "gift"}, format="json")
    assert [row["feature"] for row in done.json()["features"]] == ["gift"]
    assert set(Flag.objects.filter(stale=True).values_list("name", flat=True)) == {"cart"}

    assert member.post(url(event), {}, format="json").status_code == 200
    assert not Flag.objects.filter(stale=True).exists()
    assert member.post(url(event), {"feature": "nothing"}, format="json").status_code == 404


def test_a_parent_and_its_child_are_archived_and_revived_together(member):
    member.post(f"{CART}/dependencies", {"feature": "gift"}, format="json")
    member.post("/api/admin/projects/shop/archive", {"features": ["cart", "gift"]}, format="json")
    assert member.post(url(), {}, format="json").status_code == 200
    assert not Flag.objects.exclude(archived_at=None).exists()
    place = next(each for each in seen(member)["environments"] if each["name"] == "production")
    assert place["enabled"]  # as it was, though reviving alone leaves flags off


def test_a_flag_that_was_changed_after_its_revival_is_not_archived_again(member):
    member.delete(CART)
    member.post("/api/admin/projects/shop/revive", {"features": ["cart"]}, format="json")
    event = AuditEvent.objects.latest("id").pk
    member.post(f"{PRODUCTION}/on")
    refused = member.post(url(event), {}, format="json")
    assert refused.status_code == 409
    assert "Cart has been changed since, by member on" in refused.json()["message"]


def test_the_permissions_of_the_changes_that_it_makes_are_needed(api, member):
    member.post(f"{PRODUCTION}/off")
    preview = api["reader"].get(url()).json()
    assert preview["missing"]
    assert preview["features"][0]["parts"][0]["missingPermissions"] == ["UPDATE_FEATURE_ENVIRONMENT"]
    refused = api["reader"].post(url(), {}, format="json")
    assert (refused.status_code, refused.json()["name"]) == (403, "NoAccessError")
    assert api["outsider"].get(url()).status_code == 404
    assert api["outsider"].post(url(), {}, format="json").status_code == 404

    member.post(url(), {}, format="json")
    [told] = member.get("/api/admin/events/cart", {"limit": 1}).json()["events"]
    assert told["summary"] == "member reverted a change of flag cart"

    make_project("secret")
    create_flag("secret", NewFlag(name="stealth"), caller=Caller.system())
    assert api["member"].get(url()).status_code == 404


def test_a_change_of_too_many_flags_or_with_too_many_events_is_reverted_flag_by_flag(member, monkeypatch):
    both = {"features": ["cart", "gift"], "stale": True}
    member.post("/api/admin/projects/shop/stale", both, format="json")
    for limit, number in (("MAX_FLAGS", 2), ("MAX_EVENTS", 2)):
        monkeypatch.setattr(f"projects.reverts.change_plan.{limit}", number)
        assert member.get(url()).json()["refusal"] is None
        monkeypatch.setattr(f"projects.reverts.change_plan.{limit}", number - 1)
        assert "cannot be reverted at once. Revert it flag by flag." in member.get(url()).json()["refusal"]
        assert member.post(url(), {}, format="json").status_code == 403
        assert member.get(url(), {"feature": "gift"}).json()["refusal"] is None
        monkeypatch.undo()


@for_each("make", ["created", "deleted", "imported"])
def test_what_cannot_be_reverted_says_why(member, make):
    if make == "imported":
        body = {"project": "shop", "environment": "development", "data": {"features": [{"name": "new"}]}}
        body["data"] |= {"featureStrategies": [], "tagTypes": []}
        assert member.post("/api/admin/features-batch/import", body, format="json").status_code == 200
        why = "An import or a promotion is undone on its own page."
    elif make == "created":
        member.post(FEATURES, {"name": "new"}, format="json")
        why = "This change cannot be reverted: it created flag new."
    else:
        member.delete(f"{FEATURES}/gift")
        member.post("/api/admin/projects/shop/delete", {"features": ["gift"]}, format="json")
        why = "This change cannot be reverted: it deleted flag gift."
    assert member.get(url()).json()["refusal"] == why
    refused = member.post(url(), {}, format="json")
    assert (refused.status_code, refused.json()["message"]) == (403, why)


def test_a_flag_that_has_been_deleted_since_is_a_problem(member):
    member.put(f"{FEATURES}/gift", {"name": "gift", "description": "New"}, format="json")
    event = AuditEvent.objects.latest("id").pk
    member.delete(f"{FEATURES}/gift")
    assert "Gift is archived" in member.post(url(event), {}, format="json").json()["message"]
    member.post("/api/admin/projects/shop/delete", {"features": ["gift"]}, format="json")
    assert "Gift has been deleted" in member.post(url(event), {}, format="json").json()["message"]
    create_again = member.post(FEATURES, {"name": "gift"}, format="json")
    assert create_again.status_code == 201
    assert "Gift has been created again since" in member.post(url(event), {}, format="json").json()["message"]


def test_a_segment_is_what_it_was_and_a_deprecation_is_taken_back(api, shop, db):
    admin = api["admin"]
    condition = {"contextName": "userId", "operator": "IN", "values": ["1"]}
    made = admin.post(
        "/api/admin/segments", {"name": "vip", "constraints": [condition]}, format="json"
    ).json()
    path = f"/api/admin/segments/{made['id']}"
    before = admin.get(path).json()
    admin.put(path, {"name": "VIPs", "constraints": []}, format="json")
    event = AuditEvent.objects.latest("id").pk
    assert api["viewer"].post(url(event), {}, format="json").status_code == 403

    assert admin.post(url(event), {}, format="json").json()["subjects"] == ["VIPs"]
    assert admin.get(path).json() == before

    assert admin.post(url(event), {}, format="json").status_code == 200  # nothing is left to do
    admin.put(path, {"name": "others", "constraints": []}, format="json")
    refused = admin.post(url(event), {}, format="json")
    assert (refused.status_code, "has been changed since" in refused.json()["message"]) == (409, True)

    for deprecated in (True, False):
        verb = "deprecate" if deprecated else "reactivate"
        admin.post(f"/api/admin/strategies/remoteAddress/{verb}")
        assert StrategyType.objects.get(pk="remoteAddress").deprecated is deprecated
        assert admin.post(url(), {}, format="json").status_code == 200
        assert StrategyType.objects.get(pk="remoteAddress").deprecated is not deprecated
        admin.post(f"/api/admin/strategies/remoteAddress/{verb}")


def test_a_flag_is_not_left_on_for_everyone(member):
    """Without an enabled strategy SDKs have it on for everyone: it is off then, and says so before."""
    member.post(f"{CART}/environments/development/strategies", rollout("10"), format="json")
    event = AuditEvent.objects.latest("id").pk
    member.post(f"{CART}/environments/development/on")
    changes = member.get(url(event)).json()["features"][0]["parts"][0]["changes"]
    assert changes[0] == "switch: on → off"
    assert member.post(url(event), {}, format="json").status_code == 200
    place = next(each for each in seen(member)["environments"] if each["name"] == "development")
    assert (place["enabled"], place["strategies"]) == (False, [])
