"""Rules by the share of users where generated users tell little: patterns of ids, lists of ids, and real users."""

import gzip
from typing import Any

import orjson
import pytest

from playground.models import OwnUsers
from projects.models import Flag, Project, ProjectEnvironment, Strategy
from tests.support.change_requests import sent, turn
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)
RULES = [
    {"condition": "onlyTurnsOff", "requiredApprovals": 0},
    {"condition": "changesUsers", "percent": 5, "requiredApprovals": 2},
    {"condition": "breaksExpectation", "requiredApprovals": 4},
]


def constraint(operator: str, **more: Any) -> dict[str, Any]:
    fields = {"value": "", "values": [], "inverted": False, "caseInsensitive": False}
    return {"contextName": "userId", "operator": operator, **fields, **more}


def flag(*constraints: Any, enabled: bool = True, rollout: int = 100, name: str = "cart") -> Flag:
    links = ProjectEnvironment.objects.filter(project="shop", environment="production")
    links.update(required_approvals=1, approval_rules=RULES)
    parameters = {"rollout": f"{rollout}", "stickiness": "userId", "groupId": "cart"}
    strategy = {"name": "flexibleRollout", "parameters": parameters, "constraints": list(constraints)}
    return live_flag(name, enabled=enabled, strategies=[strategy])


def roll_out(percent: int) -> dict[str, Any]:
    parameters = {"rollout": f"{percent}", "stickiness": "userId", "groupId": "cart"}
    payload = {"id": str(Strategy.objects.get().pk), "parameters": parameters}
    return {"feature": "cart", "action": "updateStrategy", "payload": payload}


def page(browse: Any, made: Any) -> str:
    return page_text(browse("owner").get(f"/projects/shop/change-requests/{made['id']}/"))


UNTOLD = {
    "pattern": constraint("REGEX", value="^[0-9]{1,2}$"),
    "not pattern": constraint("REGEX", value="^[0-9]{1,2}$", inverted=True),
    "prefix": constraint("STR_STARTS_WITH", values=["acme-"]),
    "suffix": constraint("STR_ENDS_WITH", values=["@acme.example"]),
    "number": constraint("NUM_GT", value="1000"),
}


@pytest.mark.parametrize("untold", UNTOLD)
def test_the_strictest_rule_holds_for_what_generated_users_do_not_tell(api, browse, shop, untold):
    flag(UNTOLD[untold], enabled=False)
    made = sent(api["owner"], turn(True))
    assert made["minApprovals"] == 4
    assert made["impact"]["unmeasured"][0].startswith("cart has the condition userId")
    shown = page(browse, made)
    assert "This cannot be measured, so the strictest rule counts: cart has the condition userId" in shown


def test_cutting_a_rule_about_patterns_of_ids_says_no_small_share(api, browse, shop):
    flag(UNTOLD["pattern"])
    made = sent(api["owner"], roll_out(20))
    assert made["minApprovals"] == 4
    assert "0.02 %" not in page(browse, made)


def test_cutting_a_list_of_ids_counts_its_users(api, browse, shop):
    flag(constraint("IN", values=[f"{n}" for n in range(10)]))
    made = sent(api["owner"], roll_out(20))
    assert made["minApprovals"] == 1
    changed = made["impact"]["named"]["changed"]
    assert made["impact"]["named"]["users"] == 10
    assert 5 <= changed <= 10
    assert f"{changed} of 10 named users change" in page(browse, made)


def test_turning_off_is_measured_whatever_the_conditions(api, shop):
    flag(UNTOLD["pattern"])
    assert sent(api["owner"], turn(False))["minApprovals"] == 0


def test_turning_off_what_may_turn_on_another_is_not_measured(api, shop):
    parent = flag(UNTOLD["pattern"])
    child = live_flag("old-cart", strategies=[{"name": "default"}])
    child.parents.create(parent=parent, enabled=False)
    assert sent(api["owner"], turn(False))["minApprovals"] == 4


def test_a_condition_of_another_strategy_does_not_count(api, shop):
    flag(UNTOLD["pattern"])
    added = {"name": "flexibleRollout", "parameters": {"rollout": "3", "stickiness": "userId"}}
    made = sent(api["owner"], {"feature": "cart", "action": "addStrategy", "payload": added})
    assert (made["minApprovals"], made["impact"]["unmeasured"]) == (1, [])


def test_conditions_of_other_fields_are_measured(api, shop):
    flag(constraint("IN", contextName="country", values=["NO"]), enabled=False)
    made = sent(api["owner"], turn(True))
    assert (made["minApprovals"], made["impact"]["unmeasured"]) == (2, [])


@pytest.mark.parametrize("keeper", ["owner", "admin"])
def test_own_users_count_where_they_change_more(api, browse, people, keeper):
    flag(constraint("IN", values=[f"{n}" for n in range(10)]), enabled=False)
    users = [{"userId": f"{n}"} for n in range(10)]
    body = gzip.compress(orjson.dumps(users))
    OwnUsers.objects.create(user=people[keeper], file_name="real.csv", number=10, body=body)
    made = sent(api["owner"], turn(True))
    assert made["impact"]["own"] == {"by": keeper, "users": 10, "changed": 10}
    assert made["minApprovals"] == 2
    assert f"10 of 10 users in the file of {keeper}" in page(browse, made)


VARIANTS = [{"name": "p", "weight": 1000, "weightType": "variable", "stickiness": "default"}]


def add(**strategy: Any) -> dict[str, Any]:
    parameters = {"rollout": "4", "stickiness": "userId", "groupId": "other"}
    values = {"name": "flexibleRollout", "parameters": parameters, "sortOrder": -1, **strategy}
    return {"feature": "cart", "action": "addStrategy", "payload": values}


@pytest.mark.parametrize("stickiness", ["environment", "appName", "country"])
def test_a_share_of_values_is_no_share_of_users(api, shop, stickiness):
    """The author chooses the group, and so the values that are in."""
    flag()
    added = add(parameters={"rollout": "4", "stickiness": stickiness, "groupId": "chosen"})
    made = sent(api["owner"], added)
    assert made["minApprovals"] == 4
    sentence = f"cart has a rollout or variants by {stickiness}, about which generated users tell nothing"
    assert made["impact"]["unmeasured"] == [sentence]


def test_variants_by_another_field_are_not_measured_either(api, shop):
    flag()
    variants = [
        {"name": name, "weightType": "variable", "weight": 500, "stickiness": "country"} for name in "pq"
    ]
    change = {"feature": "cart", "action": "patchVariant", "payload": {"variants": variants}}
    assert sent(api["owner"], change)["minApprovals"] == 4


def test_the_field_that_the_project_rolls_out_by_is_measured(api, shop):
    flag()
    Project.objects.filter(pk="shop").update(default_stickiness="account")
    made = sent(api["owner"], add(parameters={"rollout": "4", "stickiness": "account"}))
    assert (made["minApprovals"], made["impact"]["unmeasured"]) == (1, [])


def test_what_only_sdks_evaluate_is_not_measured(api, shop):
    """Removing such a strategy is no turning off either: its users get the next one's result."""
    row = flag()
    hosts = {"name": "applicationHostname", "parameters": {"hostNames": "db1"}, "sort_order": 0}
    first = Strategy.objects.create(flag=row, environment_id="production", **hosts)
    assert (
        sent(api["owner"], add(name="applicationHostname", parameters={"hostNames": "db2"}))["minApprovals"]
        == 4
    )
    removal = {"feature": "cart", "action": "deleteStrategy", "payload": {"id": str(first.pk)}}
    assert sent(api["member"], removal)["minApprovals"] == 4
    assert sent(api["admin"], turn(False))["minApprovals"] == 0


def test_conditions_that_hardly_any_meets_together_are_not_measured(api, shop):
    """Half of the generated users meet each of them, and real users may meet all."""
    flag(enabled=False)
    many = [constraint("IN", contextName=f"plan{number}", values=["x"]) for number in range(12)]
    made = sent(api["owner"], add(constraints=many), turn(True) | {"feature": "cart"})
    assert made["minApprovals"] == 4


def test_a_share_counts_among_those_who_meet_the_conditions(api, browse, shop):
    flag()
    halves = [constraint("IN", contextName=f"plan{number}", values=["x"]) for number in range(3)]
    for rollout, needed in ((4, 1), (20, 2)):
        parameters = {"rollout": f"{rollout}", "stickiness": "userId", "groupId": "other"}
        added = add(constraints=halves, parameters=parameters, variants=VARIANTS)
        made = sent(api["owner" if rollout == 4 else "member"], added)
        assert 0 < made["impact"]["changed"] < 500
        assert made["minApprovals"] == needed
    assert " % of those who meet the conditions of a strategy." in page(browse, made)


def test_own_users_do_not_hide_who_changes(api, people, shop):
    """A file of users whom nothing concerns leaves the share of generated users as it is."""
    flag(enabled=False)
    body = gzip.compress(orjson.dumps([{"userId": "x", "country": "NO"}]))
    OwnUsers.objects.create(user=people["owner"], file_name="few.csv", number=1, body=body)
    assert sent(api["owner"], turn(True))["minApprovals"] == 2


def safeguard() -> dict[str, Any]:
    values = {
        "impactMetric": {"metricName": "errors", "timeRange": "hour", "aggregationMode": "count"},
        "triggerCondition": {"operator": ">", "threshold": 10},
    }
    return {"feature": "cart", "action": "changeFeatureEnvSafeguard", "payload": {"safeguard": values}}


def test_what_a_safeguard_may_do_is_said_apart(api, browse, shop):
    flag(rollout=40)
    made = sent(api["owner"], safeguard(), roll_out(43))
    certain, worst = made["impact"], made["impact"]["ifBreached"]
    assert 200 <= certain["changed"] <= 400
    assert certain["counts"] == {"offToOn": certain["changed"]}
    assert worst["counts"] == {"onToOff": worst["changed"]}
    assert worst["changed"] > 3_500
    assert made["minApprovals"] == 2
    shown = page(browse, made)
    assert f"If a safeguard is breached: {worst['changed']:,} of 10,000 generated users change." in shown
    assert " % if a safeguard is breached." in shown


def test_without_a_safeguard_nothing_is_said_of_one(api, shop):
    flag(rollout=40)
    assert "ifBreached" not in sent(api["owner"], roll_out(43))["impact"]


def pad() -> dict[str, Any]:
    """A change of a flag with so many values that there is time for 100 users only."""
    values = [f"{number}" for number in range(60_000)]
    everybody = {"name": "default", "constraints": [constraint("IN", values=values)]}
    live_flag("padded", enabled=False, strategies=[everybody])
    return {"feature": "padded", "action": "patchVariant", "payload": {"variants": VARIANTS}}


def test_few_users_count_with_the_largest_share_that_they_may_hide(api, browse, shop):
    """The author chooses a group that has 7 % of all users, and fewer of these."""
    flag()
    parameters = {"rollout": "7", "stickiness": "userId", "groupId": "19"}
    made = sent(api["owner"], pad(), add(parameters=parameters, variants=VARIANTS))
    assert (made["impact"]["users"], made["impact"]["changed"]) == (100, 4)
    assert made["minApprovals"] == 2
    assert "so many values leave time for 100 users only" in page(browse, made)


def test_few_users_do_not_tell_that_a_request_only_turns_off(api, shop):
    """The child is turned on for 1 % of all users, and for none of these."""
    parent = flag()
    parameters = {"rollout": "1", "stickiness": "userId", "groupId": "23"}
    child = live_flag("old-cart", strategies=[{"name": "flexibleRollout", "parameters": parameters}])
    child.parents.create(parent=parent, enabled=False)
    padding = pad() | {"action": "updateEnabled", "payload": {"enabled": False}}
    Flag.objects.get(name="padded").environments.update(enabled=True)
    made = sent(api["owner"], turn(False), padding)
    assert "offToOn" not in made["impact"]["counts"]
    assert (made["impact"]["users"], made["impact"]["onlyTurnsOff"]) == (100, False)
    assert made["minApprovals"] == 2
