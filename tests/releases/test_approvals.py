"""Approvals by impact: the first rule of the environment that holds says how many a request needs."""

import re
from typing import Any

import pytest

from groups.models import User
from groups.permissions import BuiltIn
from playground.models import SavedContext
from projects.models import Flag, FlagTag, ProjectEnvironment, Strategy, TagType
from releases.models import ChangeRequest
from releases.requests.approvers import list_approvers
from tests.support.cast import client, make_group, make_token, make_user
from tests.support.change_requests import MAKE, SHOP, enter, reviewer, sent, turn
from tests.support.flags import is_on
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.playground import live_flag

PAGE = "/projects/shop/environments/production/approvals"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cart(shop: Any) -> Flag:
    strategies = [{"name": "flexibleRollout", "parameters": {"rollout": "10", "stickiness": "userId"}}]
    return live_flag("cart", strategies=strategies)


def rule(condition: str, approvals: int, **more: Any) -> dict[str, Any]:
    return {"condition": condition, **more, "requiredApprovals": approvals}


DEMO = [
    rule("onlyTurnsOff", 0),
    rule("touchesTag", 3, tag="risk:high"),
    rule("changesUsers", 2, percent=5),
]


def configure(api: Any, *rules: Any, otherwise: int = 1, **more: Any) -> Any:
    body = {
        "changeRequestsEnabled": True,
        "requiredApprovals": otherwise,
        "approvalRules": list(rules),
        **more,
    }
    answer = api["owner"].put(f"{MAKE}/config", body, format="json")
    assert answer.status_code == 200, answer.content


def roll_out(percent: int) -> dict[str, Any]:
    parameters = {"rollout": f"{percent}", "stickiness": "userId"}
    payload = {"id": str(Strategy.objects.get().pk), "parameters": parameters}
    return {"feature": "cart", "action": "updateStrategy", "payload": payload}


def test_the_first_rule_that_holds_counts_and_rules_stay(api, cart):
    configure(api, *DEMO)
    assert sent(api["owner"], roll_out(12))["minApprovals"] == 1
    assert sent(api["owner"], roll_out(40))["minApprovals"] == 2
    assert sent(api["owner"], turn(False))["minApprovals"] == 0
    FlagTag.objects.create(flag=cart, tag_type=TagType.objects.create(name="risk"), value="high")
    assert sent(api["owner"], roll_out(12))["minApprovals"] == 3

    api["owner"].put(f"{MAKE}/config", {"changeRequestsEnabled": True, "requiredApprovals": 4}, format="json")
    [production] = [
        row
        for row in api["viewer"].get(f"{SHOP}/change-requests/config").json()
        if row["environment"] == "production"
    ]
    assert (production["requiredApprovals"], production["approvalRules"]) == (4, DEMO)


def test_saved_contexts_and_expectations(api, cart):
    configure(api, rule("breaksExpectation", 3), rule("changesSavedContext", 2), otherwise=0)
    assert sent(api["owner"], roll_out(11))["minApprovals"] == 0
    saved = SavedContext.objects.create(name="Ola", context={"userId": "42"})
    assert sent(api["owner"], roll_out(100))["minApprovals"] == 2
    Strategy.objects.update(parameters={"rollout": "100", "stickiness": "userId", "groupId": "cart"})
    expected = {"flag": "cart", "environment": "production", "enabled": True, "variant": None}
    SavedContext.objects.filter(pk=saved.pk).update(expectations=[expected])
    assert sent(api["owner"], turn(False))["minApprovals"] == 3


def test_turning_off_what_turns_another_on_is_not_only_turning_off(api, cart):
    configure(api, *DEMO)
    child = live_flag("old-cart", strategies=[{"name": "default"}])
    child.parents.create(parent=cart, enabled=False)
    assert sent(api["owner"], turn(False))["minApprovals"] == 2


def test_alone_with_ones_own_permissions(api, cart):
    configure(api, *DEMO)
    made = sent(api["viewer"], turn(False))
    assert made["state"] == "Approved"
    assert enter(api["viewer"], made, "Applied").status_code == 403
    assert enter(api["owner"], made, "Applied").status_code == 403
    assert is_on()
    assert enter(api["owner"], sent(api["owner"], turn(False)), "Applied").json()["state"] == "Applied"
    assert not is_on()


def test_a_rule_that_holds_by_now_asks_for_more(api, cart):
    configure(api, *DEMO)
    made = sent(api["owner"], roll_out(12))
    assert enter(api["admin"], made, "Approved").json()["state"] == "Approved"
    configure(api, rule("changesUsers", 2, percent=1))
    refused = enter(api["admin"], made, "Applied")
    assert refused.status_code == 409
    assert "it needs 2 approvals now and has 1." in refused.json()["message"]
    shown = api["owner"].get(f"{SHOP}/change-requests/{made['id']}").json()
    assert (shown["state"], shown["minApprovals"], len(shown["approvals"])) == ("In review", 2, 1)


def test_who_may_approve_takes_as_many_queries_for_many_people(
    people: Any, cart: Flag, django_assert_num_queries: Any
) -> None:
    User.objects.bulk_create([User(username=f"user-{n}", root_role_id=BuiltIn.ADMIN) for n in range(20)])
    User.objects.create(username="left", root_role_id=BuiltIn.ADMIN, is_active=False)
    with django_assert_num_queries(3):
        approvers = [user.username for user in list_approvers("shop", "production")]
    assert approvers == sorted(["admin", *(f"user-{n}" for n in range(20))])


def test_only_members_of_named_groups_approve(api, browse, cart):
    """A deleted group lets nobody else in."""
    ivy = make_user("ivy", root_role=1)
    ivys = client(make_token("personal", user=ivy))
    release = make_group("Release managers", ivy)
    configure(api, approverGroups=[release.pk])
    made = sent(api["owner"], roll_out(12))
    refused = enter(api["admin"], made, "Approved")
    assert refused.status_code == 403
    assert "Only members of Release managers may approve changes of production" in refused.json()["message"]
    assert enter(api["admin"], made, "Rejected").status_code == 403
    waiting = [by.get(f"{SHOP}/change-requests/actionable").json()["total"] for by in (api["admin"], ivys)]
    assert waiting == [0, 1]
    [reviewer] = (
        api["viewer"].get(f"{SHOP}/change-requests/available-reviewers/production").json()["reviewers"]
    )
    assert reviewer["id"] == ivy.pk
    page = browse("owner").get(PAGE)
    assert f'value="{release.pk}" id="id_groups_0" checked' in page.content.decode()
    assert "Only members of Release managers" in page_text(
        browse("owner").get(f"/projects/shop/change-requests/{made['id']}/")
    )
    gone = release.pk
    release.delete()
    assert enter(ivys, made, "Approved").status_code == 403
    assert f"Deleted group {gone}" in page_text(browse("owner").get(PAGE))
    configure(api, approverGroups=[])
    assert enter(ivys, made, "Approved").json()["state"] == "Approved"


@for_each(
    ("wrong", "message"),
    [
        (rule("onFridays", 1), "approvalRules[0].condition: must be one of breaksExpectation"),
        (rule("onlyTurnsOff", 11), "approvalRules[0].requiredApprovals: must be 0 to 10, not 11"),
        (rule("changesUsers", 1), "approvalRules[0].percent: is missing"),
        (rule("changesUsers", 1, percent=100), "approvalRules[0].percent: must be from 0 to below 100"),
        (rule("touchesTag", 1, tag="risk"), "approvalRules[0].tag: must be a tag as type:value"),
    ],
)
def test_rules_are_checked(api, cart, wrong, message):
    body = {"changeRequestsEnabled": True, "approvalRules": [wrong]}
    refused = api["owner"].put(f"{MAKE}/config", body, format="json")
    assert refused.status_code == 400
    assert refused.json()["message"].startswith(message)


def test_groups_that_may_approve_are_checked_and_named(api, cart, browse):
    body = {"changeRequestsEnabled": True, "approverGroups": [4711]}
    refused = api["owner"].put(f"{MAKE}/config", body, format="json")
    assert refused.json()["message"] == "approverGroups[0]: group 4711 does not exist"

    group = make_group("Reviewers")
    configure(api, approverGroups=[group.pk])
    url = "/if-saved/projects/shop/features/cart/share?environmentId=production"
    said = page_text(browse("member").post(url, {"share": "60"}, headers={"HX-Request": "true"}))
    assert "Needs 1 approval by members of Reviewers: everything" in said


def test_the_pages_edit_rules_and_say_which_holds(api, browse, cart):
    configure(api, rule("onlyTurnsOff", 0))
    owner = browse("owner")
    assert browse("member").get(PAGE).status_code == 403
    form = {
        "approvals": "1",
        "condition_1": "onlyTurnsOff",
        "needs_1": "0",
        "condition_2": "changesUsers",
        "value_2": "many",
        "needs_2": "2",
        "condition_3": "",
    }
    refused = owner.post(PAGE, form)
    assert refused.status_code == 400
    assert "Must be a percentage" in page_text(refused)
    assert owner.post(PAGE, form | {"value_2": "5 %"}).status_code == 302
    link = ProjectEnvironment.objects.get(project="shop", environment="production")
    assert link.approval_rules == [rule("onlyTurnsOff", 0), rule("changesUsers", 2, percent=5)]
    assert "2 rules" in page_text(owner.get("/projects/shop/settings/approvals/"))
    request = sent(api["owner"], roll_out(60))
    text = page_text(owner.get(f"/projects/shop/change-requests/{request['id']}/"))
    assert "Needs 2 approvals" in text
    assert "Rule 2: changes more than 5 % of generated users → 2 approvals." in text
    assert not re.search("Rule [13]:", text)
    assert ChangeRequest.objects.get(pk=request["id"]).required_approvals == 2


@pytest.fixture
def vera(api, cart):
    configure(api, *DEMO)
    reviewer("vera", "APPROVE_CHANGE_REQUEST", "UPDATE_FEATURE_STRATEGY")


@for_each(
    ("page", "form", "needs"),
    [
        ("share", {"share": "12"}, "Needs 1 approval by admin, vera: everything else"),
        (
            "share",
            {"share": "60"},
            "Needs 2 approvals by admin, vera: changes more than 5 % of generated users",
        ),
        ("switch", {"enabled": "off"}, "Needs no approval: only turns flags off"),
        ("switch", {"enabled": "on"}, ""),
    ],
)
def test_a_form_says_what_its_request_would_need(browse, vera, page, form, needs):
    url = f"/if-saved/projects/shop/features/cart/{page}?environment=production&environmentId=production"
    form = form | {"environment": "production"}
    for headers in ({"HX-Request": "true"}, {}):
        said = page_text(browse("member").post(url, form, headers=headers))
        assert needs in said
        assert bool(needs) == ("Needs" in said)
    assert not ChangeRequest.objects.exists()
