"""Tags by which approvals are counted: who may not skip requests neither takes them away nor adds them to need less."""

from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.models import Grant
from groups.permissions import BuiltIn
from projects.models import Flag, FlagEnvironment, FlagTag, ProjectEnvironment, TagType
from releases.gate import find_deciding
from tests.support.cast import make_project
from tests.support.change_requests import SHOP, reviewer, sent, turn
from tests.support.flags import make_flag
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db(transaction=True)
FLAGS = "/api/admin/features"
RISK = {"type": "risk", "value": "high"}
SAFE = {"type": "risk", "value": "low"}
RULES = [
    {"condition": "onlyTurnsOff", "requiredApprovals": 0},
    {"condition": "touchesTag", "tag": "risk:high", "requiredApprovals": 3},
    {"condition": "touchesTag", "tag": "risk:low", "requiredApprovals": 0},
]


@pytest.fixture
def cart(shop: Any, people: Any) -> Flag:
    """A flag that is off, with the tag for which production asks for three approvals."""
    TagType.objects.create(name="risk")
    flag = make_flag("cart")
    FlagTag.objects.create(flag=flag, tag_type_id="risk", value="high")
    links = ProjectEnvironment.objects.filter(project="shop", environment="production")
    links.update(required_approvals=1, approval_rules=RULES)
    Grant.objects.create(role_id=BuiltIn.OWNER, project=make_project("docs"), user=people["owner"])
    return flag


def tags() -> list[str]:
    return sorted(f"{tag.flag.name} {tag.tag_type_id}:{tag.value}" for tag in FlagTag.objects.all())


def import_without_tags(by: Any, environment: str = "development", **more: Any) -> Any:
    data: dict[str, Any] = {
        "features": [{"name": "cart", "type": "release"}],
        "featureStrategies": [],
        "featureTags": [],
    }
    data |= {"featureEnvironments": [], "tagTypes": []} | more
    body = {"project": "shop", "environment": environment, "data": data}
    return by.post("/api/admin/features-batch/import", body, format="json")


def archive_and_delete(by: Any) -> Any:
    assert by.delete(f"{SHOP}/features/cart").status_code == 202
    return by.delete("/api/admin/archive/cart")


REMOVED = {"addedTags": [], "removedTags": [RISK]}
WAYS = {
    "one": lambda by: by.delete(f"{FLAGS}/cart/tags/risk/high"),
    "several": lambda by: by.put(f"{FLAGS}/cart/tags", REMOVED, format="json"),
    "bulk": lambda by: by.put(f"{SHOP}/tags", {"features": ["cart"], "tags": REMOVED}, format="json"),
    "everywhere": lambda by: by.delete("/api/admin/tags/risk/high"),
    "import": import_without_tags,
    "move": lambda by: by.post(
        f"{SHOP}/features/cart/changeProject", {"newProjectId": "docs"}, format="json"
    ),
    "deletion": archive_and_delete,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_tag_that_asks_for_more_approvals_is_not_taken_away(api: Any, cart: Flag, way: str) -> None:
    refused = WAYS[way](api["owner"])
    assert (refused.status_code, refused.json().get("permissions")) == (403, ["SKIP_CHANGE_REQUEST"])
    assert refused.json()["message"].startswith(
        "This would add or remove tags that approval rules of production in project shop depend on (risk:high on cart). "
        "Only those who may skip change requests there can do that. Nothing was saved."
    )
    assert (tags(), Flag.objects.get().project_id) == (["cart risk:high"], "shop")


@pytest.mark.parametrize("way", WAYS)
def test_who_may_skip_requests_takes_it_away(api: Any, cart: Flag, way: str) -> None:
    assert WAYS[way](api["admin"]).status_code < 300
    assert tags() == (["cart risk:high"] if way == "move" else [])


def test_an_import_that_also_turns_the_flag_on_is_recorded_once(api: Any, cart: Flag) -> None:
    on = {"featureEnvironments": [{"name": "cart", "featureName": "cart", "enabled": True}]}
    assert import_without_tags(api["admin"], environment="production", **on).status_code == 200
    assert FlagEnvironment.objects.get(flag=cart, environment="production").enabled
    skipped = AuditEvent.objects.filter(type="change-request-skipped")
    assert (tags(), list(skipped.values_list("feature", "environment"))) == ([], [("cart", "production")])


def test_that_it_was_added_is_not_taken_back(api: Any, cart: Flag) -> None:
    make_flag("gift")
    assert api["owner"].post(f"{FLAGS}/gift/tags", RISK, format="json").status_code == 201
    event = AuditEvent.objects.latest("id").pk
    assert api["owner"].post(f"/api/admin/events/{event}/revert", {}, format="json").status_code == 403
    assert tags() == ["cart risk:high", "gift risk:high"]


def test_a_tag_type_that_a_flag_has_is_not_deleted(api: Any, cart: Flag) -> None:
    assert api["editor"].delete("/api/admin/tag-types/risk").status_code == 409


def test_a_tag_that_asks_for_fewer_approvals_is_not_added(api: Any, cart: Flag) -> None:
    assert api["owner"].post(f"{FLAGS}/cart/tags", SAFE, format="json").status_code == 403
    new = {"name": "new", "tags": [SAFE]}
    assert api["owner"].post(f"{SHOP}/features", new, format="json").status_code == 403
    assert api["owner"].delete(f"{FLAGS}/cart/tags/risk/low").status_code == 200
    assert tags() == ["cart risk:high"]


def test_a_flag_does_not_bring_a_tag_that_asks_for_fewer(api: Any, cart: Flag) -> None:
    FlagTag.objects.create(flag=make_flag("wiki", project="docs"), tag_type_id="risk", value="low")
    move = {"newProjectId": "shop"}
    moved = api["owner"].post("/api/admin/projects/docs/features/wiki/changeProject", move, format="json")
    assert (moved.status_code, Flag.objects.get(name="wiki").project_id) == (403, "docs")


def test_all_other_tags_come_and_go(api: Any, cart: Flag) -> None:
    owner, risky = api["owner"], {"name": "risky", "tags": [RISK]}
    assert owner.post(f"{SHOP}/features", risky, format="json").status_code == 201
    assert (
        owner.post(f"{FLAGS}/cart/tags", {"type": "simple", "value": "web"}, format="json").status_code == 201
    )
    assert owner.delete(f"{FLAGS}/cart/tags/simple/web").status_code == 200
    assert tags() == ["cart risk:high", "risky risk:high"]
    ProjectEnvironment.objects.update(required_approvals=None)
    assert owner.delete(f"{FLAGS}/cart/tags/risk/high").status_code == 200


def test_a_project_is_deleted_with_its_tags(api: Any, cart: Flag) -> None:
    Flag.objects.update(archived_at="2026-01-01T00:00:00Z")
    assert api["owner"].delete(SHOP).status_code == 200
    assert tags() == []


def test_in_the_console_it_takes_a_reason(browse: Any, cart: Flag) -> None:
    page, remove = "/projects/shop/features/cart/tags", RISK | {"do": "remove"}
    refused = browse("owner").post(page, remove)
    assert "This would add or remove tags that approval rules of production" in page_text(refused)
    assert "Save without a request" not in page_text(refused)
    skipped = remove | {"skip_change_request": "yes", "comment": "Wrong flag"}
    browse("admin").post(page, skipped)
    assert tags() == []


@pytest.mark.parametrize(
    ("rules", "otherwise", "going", "coming"),
    [
        ([("a", 3)], 1, {"a"}, set()),
        ([("a", 0)], 1, set(), {"a"}),
        ([("a", 1)], 1, set(), set()),
        ([("a", 2), ("b", 3)], 1, {"a", "b"}, {"a"}),
        ([("", 5), ("a", 2)], 1, {"a"}, set()),
        ([("a", 2), ("", 5)], 2, set(), {"a"}),
        ([("", 5)], 1, set(), set()),
    ],
)
def test_what_a_rule_asks_for_is_compared_with_what_may_hold_instead(
    rules: list[tuple[str, int]], otherwise: int, going: set[str], coming: set[str]
) -> None:
    stored = [
        {"condition": "touchesTag" if tag else "changesUsers", "tag": tag, "requiredApprovals": needed}
        for tag, needed in rules
    ]
    assert find_deciding(stored, otherwise) == (going, coming)


def test_the_permission_of_one_environment_is_not_enough_for_another(cart: Flag) -> None:
    rita = reviewer("rita", "UPDATE_FEATURE", "SKIP_CHANGE_REQUEST", environment="development")
    assert rita.delete(f"{FLAGS}/cart/tags/risk/high").status_code == 403
    assert tags() == ["cart risk:high"]


def test_children_of_what_is_changed_are_touched(api: Any, cart: Flag) -> None:
    """Also those of children: turning off the untagged parent turns off the tagged flag."""
    parent = make_flag("parent", environment="production", enabled=True, strategies=[{"name": "default"}])
    middle = make_flag("middle")
    middle.parents.create(parent=parent)
    cart.parents.create(parent=middle)
    rules = [rule for rule in RULES if rule["condition"] == "touchesTag"]
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(approval_rules=rules)
    assert sent(api["owner"], turn(False, "parent"))["minApprovals"] == 3
