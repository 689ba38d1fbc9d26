"""Safeguards: breached ones pause, step back or turn off; without data a plan holds and is never taken back."""

from typing import Any

import pytest
from django.utils import timezone

from flagadmin.core.errors import ValidationError
from groups.access import Caller
from projects.models import FlagEnvironment
from releases.models import ReleasePlan, Safeguard
from releases.plans.due import look_at_due
from releases.safeguards.actions import note_alert, remove_safeguard, set_safeguard
from releases.safeguards.judge import Judge, State, Verdict
from releases.safeguards.serializers import SafeguardBody
from tests.support.impact_metrics import MINUTE, report, report_all, sdk
from tests.support.plans import DAY, PLACE, WHO, Move, cart, reload, rollout_of, started, state_of

__all__ = ["sdk"]
pytestmark = pytest.mark.django_db(transaction=True)
SAFEGUARDS = "/api/admin/projects/shop/features/cart/environments/production/release-plans/{}/safeguards"


@pytest.fixture
def plan(shop: Any, pass_time: Move) -> ReleasePlan:
    cart(5)
    return started(5, 25, 50)


def guard(plan: ReleasePlan, metric: str = "errors", threshold: float = 10, **members: Any) -> Safeguard:
    operator, action = members.pop("operator", ">"), members.pop("action", "pause")
    asked = {"metricName": metric, "timeRange": "hour", "aggregationMode": "count"} | members
    body = SafeguardBody(
        data={
            "impactMetric": asked,
            "triggerCondition": {"operator": operator, "threshold": threshold},
            "action": {"type": action},
        }
    )
    body.is_valid(raise_exception=True)
    set_safeguard(PLACE, plan.pk, body.validated_data, caller=WHO)
    return Safeguard.objects.latest("id")


def verdict(plan: ReleasePlan) -> Verdict:
    [only] = Judge(timezone.now()).judge(reload(plan))
    return only


def test_one_that_holds_lets_the_plan_go_on(plan, sdk, pass_time):
    guard(plan, threshold=1000)
    pass_time(DAY - 2 * MINUTE)
    report_all(sdk, pass_time, [1, 2])
    look_at_due()
    assert rollout_of() == 25


def test_a_breached_one_pauses_and_says_why(plan, sdk, pass_time):
    guard(plan)
    report_all(sdk, pass_time, [5, 5])
    look_at_due()
    assert state_of(plan) == ("running", "5 %")
    report_all(sdk, pass_time, [1])
    look_at_due()
    assert (state_of(plan), reload(plan).reason) == (("paused", "5 %"), "errors above 10: 11 now.")
    pass_time(2 * DAY)
    look_at_due()
    assert rollout_of() == 5


def test_a_breached_one_may_step_back(plan, sdk, pass_time):
    guard(plan, threshold=1, action="stepBack")
    pass_time(DAY - MINUTE)
    report_all(sdk, pass_time, [1])
    look_at_due()
    assert rollout_of() == 25
    report_all(sdk, pass_time, [0, 3])
    look_at_due()
    assert (rollout_of(), state_of(plan)) == (5, ("paused", "5 %"))


def test_a_breached_one_may_turn_off(plan, sdk, pass_time):
    guard(plan, threshold=1, action="turnOff")
    report_all(sdk, pass_time, [0, 3])
    look_at_due()
    assert state_of(plan) == ("paused", "5 %")
    assert not FlagEnvironment.objects.get(flag__name="cart", environment="production").enabled


def test_without_data_the_plan_holds_and_is_not_taken_back(plan, sdk, pass_time):
    guard(plan, action="turnOff")
    report_all(sdk, pass_time, [1])
    pass_time(2 * DAY)
    look_at_due()
    assert (state_of(plan), verdict(plan).state) == (("running", "5 %"), State.NO_DATA)
    assert verdict(plan).sentence.startswith("errors: no numbers for ")
    report_all(sdk, pass_time, [1])
    look_at_due()
    assert rollout_of() == 25


def test_numbers_from_before_the_step_do_not_count(plan, sdk, pass_time):
    guard(plan, threshold=10)
    pass_time(DAY - 2 * MINUTE)
    report_all(sdk, pass_time, [4, 4])
    pass_time(MINUTE / 2)
    look_at_due()
    assert rollout_of() == 25
    report_all(sdk, pass_time, [4, 4])
    look_at_due()
    assert verdict(plan).value == 8


def test_a_total_that_must_not_be_low_is_known_after_its_time(plan, sdk, pass_time):
    guard(plan, operator="<", threshold=3)
    report_all(sdk, pass_time, [9])
    assert verdict(plan).state == State.TOO_EARLY
    report_all(sdk, pass_time, [0] * 61)
    assert verdict(plan).state == State.BREACHED


def test_users_with_the_flag_are_compared_with_those_without(plan, sdk, pass_time):
    guard(plan, aggregationMode="rps", threshold=0.5, comparesWithout=True)
    report_all(sdk, pass_time, [60], cart="enabled")
    assert verdict(plan).state == State.NO_DATA
    report_all(sdk, pass_time, [60], cart="disabled")
    assert verdict(plan).state == State.HOLDS
    report_all(sdk, pass_time, [600], cart="enabled")
    report(sdk, 1, cart="disabled")
    assert verdict(plan).state == State.BREACHED


def test_labels_select_series(plan, sdk, pass_time):
    guard(plan, labelSelectors={"appName": ["web"], "path": ["/pay", "/cart"]})
    report_all(sdk, pass_time, [5], path="/pay")
    report(sdk, 5, path="/cart")
    report(sdk, 500, path="/other")
    assert (verdict(plan).value, verdict(plan).state) == (10, State.HOLDS)


def test_percentiles_are_those_of_histograms(plan, sdk, pass_time):
    guard(plan, aggregationMode="p95", threshold=0.2, metric="seconds")
    buckets = [{"le": 0.1, "count": 90}, {"le": 0.5, "count": 100}, {"le": "+Inf", "count": 100}]
    sample = {"labels": {}, "count": 100, "sum": 9.0, "buckets": buckets}
    metric = {"name": "seconds", "help": "", "type": "histogram", "samples": [sample]}
    pass_time(MINUTE)
    bucket = {"start": "2026-11-24T08:00:00Z", "stop": "2026-11-24T08:01:00Z", "toggles": {}}
    for _ in range(2):
        body = {"appName": "web", "instanceId": "1", "bucket": bucket, "impactMetrics": [metric]}
        assert sdk.post("/api/client/metrics", body, format="json").status_code == 202
    assert verdict(plan).value == pytest.approx(0.3)
    assert verdict(plan).state == State.BREACHED


def test_an_alert_pauses_until_it_is_over_and_somebody_goes_on(plan, pass_time):
    guard(plan, metric="HighErrors", source="alert", labelSelectors={"severity": ["page"]})
    assert note_alert("HighErrors", {"severity": "info"}, fires=True, caller=Caller.system()) == 0
    assert note_alert("Other", {"severity": "page"}, fires=True, caller=Caller.system()) == 0
    assert note_alert("HighErrors", {"severity": "page"}, fires=True, caller=Caller.system()) == 1
    assert note_alert("HighErrors", {"severity": "page"}, fires=True, caller=Caller.system()) == 0
    look_at_due()
    assert reload(plan).reason == "Alert HighErrors fires."
    assert note_alert("HighErrors", {"severity": "page"}, fires=False, caller=Caller.system()) == 1
    assert verdict(plan).state == State.HOLDS


def test_an_alert_of_several_servers_is_over_once_it_is_for_all(plan):
    guard(plan, metric="Down", source="alert")
    assert note_alert("Down", {"server": "a"}, fires=True, caller=Caller.system()) == 1
    assert note_alert("Down", {"server": "b"}, fires=True, caller=Caller.system()) == 0
    assert note_alert("Down", {"server": "c"}, fires=False, caller=Caller.system()) == 0
    assert note_alert("Down", {"server": "b"}, fires=False, caller=Caller.system()) == 0
    assert verdict(plan).state == State.BREACHED
    assert note_alert("Down", {"server": "a"}, fires=False, caller=Caller.system()) == 1
    assert verdict(plan).state == State.HOLDS


def test_of_another_alert_than_before_nothing_is_known_yet(api, plan):
    url, body = SAFEGUARDS.format(plan.pk), {"impactMetric": {"metricName": "Down", "source": "alert"}}
    api["owner"].put(url, body, format="json")
    note_alert("Down", {}, fires=True, caller=Caller.system())
    [made] = api["owner"].get(url).json()
    renamed = body | {"id": made["id"], "title": "It is down"}
    assert api["owner"].put(url, renamed, format="json").status_code == 204
    assert api["owner"].get(url).json()[0]["firingSince"] == made["firingSince"] is not None
    for other in ({"labelSelectors": {"severity": ["page"]}}, {"metricName": "HighErrors"}):
        note_alert("Down", {}, fires=True, caller=Caller.system())
        renamed = body | {"id": made["id"], "impactMetric": body["impactMetric"] | other}
        assert api["owner"].put(url, renamed, format="json").status_code == 204
        assert api["owner"].get(url).json()[0]["firingSince"] is None
        assert verdict(plan).state == State.HOLDS
        api["owner"].put(url, body | {"id": made["id"]}, format="json")


def test_safeguards_are_set_changed_and_removed_by_api(api, plan):
    url = SAFEGUARDS.format(plan.pk)
    body = {
        "impactMetric": {"metricName": "errors", "timeRange": "day", "aggregationMode": "p99"},
        "triggerCondition": {"operator": "<", "threshold": 3},
    }
    assert api["owner"].put(url, body, format="json").status_code == 204
    [made] = api["reader"].get(url).json()
    assert made["action"] == {"type": "pause", "id": plan.pk}
    assert made["triggerCondition"] == {"operator": "<", "threshold": 3.0}
    assert api["owner"].put(url, body | {"id": made["id"], "title": "E"}, format="json").status_code == 204
    assert [each["title"] for each in api["reader"].get(url).json()] == ["E"]
    assert api["owner"].delete(f"{url}/{made['id']}").status_code == 204
    assert api["owner"].delete(f"{url}/{made['id']}").status_code == 404
    for name, value in (("timeRange", "year"), ("aggregationMode", "max"), ("source", "moon")):
        odd = body | {"impactMetric": body["impactMetric"] | {name: value}}
        assert api["owner"].put(url, odd, format="json").status_code == 400


def test_a_plan_has_few_safeguards(plan):
    for _ in range(10):
        guard(plan)
    with pytest.raises(ValidationError):
        guard(plan)
    remove_safeguard(PLACE, plan.pk, Safeguard.objects.earliest("id").pk, caller=WHO)
    guard(plan)
