"""Safeguards of a flag in an environment: a breached one turns the flag off there, and nothing else does anything."""

from datetime import timedelta
from itertools import islice
from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import ValidationError
from groups.access import Caller
from projects.flags.environments.actions import disable_flag, enable_flag
from projects.models import Flag, ProjectEnvironment
from releases import attempts
from releases.attempts import claim_due
from releases.gate_refusal import NeedsChangeRequest
from releases.models import ChangeRequest, Safeguard
from releases.plans.due import look_at_due
from releases.requests.propose import send_changes
from releases.requests.states import set_state
from releases.safeguards.actions import note_alert, remove_flag_safeguard, set_flag_safeguard
from releases.safeguards.serializers import FlagSafeguardBody
from tests.support.flags import is_on
from tests.support.impact_metrics import MINUTE, report, report_all, sdk
from tests.support.page_text import page_text
from tests.support.plans import PLACE, WHO, Move, cart
from tests.support.racing import together

__all__ = ["sdk"]
pytestmark = pytest.mark.django_db(transaction=True)
URL = "/api/admin/projects/shop/features/cart/environments/production/safeguards"
PAGE = "/projects/shop/features/cart/environments/production/safeguards/"
ERRORS = {
    "impactMetric": {"metricName": "errors", "timeRange": "hour", "aggregationMode": "count"},
    "triggerCondition": {"operator": ">", "threshold": 10},
}
ALERT = {"impactMetric": {"metricName": "Down", "source": "alert"}}


@pytest.fixture
def flag(shop: Any, pass_time: Move) -> Flag:
    return cart(50)


def guard(values: dict[str, Any] = ERRORS, *, caller: Caller = WHO, **more: Any) -> Safeguard:
    body = FlagSafeguardBody(data=values | more)
    body.is_valid(raise_exception=True)
    return set_flag_safeguard(PLACE, body.validated_data, caller=caller)


def look(move: Move, minutes: int = 1) -> bool:
    move(minutes * MINUTE)
    look_at_due()
    return is_on()


def test_a_breached_one_turns_the_flag_off_and_says_why(flag, sdk, pass_time):
    guard()
    assert look(pass_time, 0)
    report_all(sdk, pass_time, [5, 5])
    assert look(pass_time)
    report(sdk, 1)
    assert not look(pass_time)
    event = AuditEvent.objects.get(type="feature-environment-disabled")
    assert (event.actor_name, event.comment) == ("Safeguard", "errors above 10: 11 now.")


def test_two_servers_turn_it_off_once(flag, sdk, pass_time):
    guard()
    look(pass_time, 0)
    report_all(sdk, pass_time, [50])
    pass_time(MINUTE)
    together(*[look_at_due] * 4)
    assert not is_on()
    assert AuditEvent.objects.filter(type="feature-environment-disabled").count() == 1


def test_a_slow_look_at_many_ends(flag, pass_time, monkeypatch):
    monkeypatch.setattr(attempts, "AT_ONCE", 1)
    due = [guard(), guard(ALERT)]
    rounds = [
        (keys, pass_time(2 * MINUTE))
        for keys in islice(claim_due("releases_safeguard", MINUTE), 2 * len(due))
    ]
    assert sorted(key for [key], _ in rounds) == sorted(safeguard.pk for safeguard in due)


def test_what_was_reported_before_the_flag_was_on_does_not_count(flag, sdk, pass_time):
    guard()
    look(pass_time, 0)
    report_all(sdk, pass_time, [50])
    assert not look(pass_time)
    enable_flag(*PLACE, caller=WHO)
    assert look(pass_time)
    assert look(pass_time, 2)
    report_all(sdk, pass_time, [50])
    assert not look(pass_time)


def test_a_flag_that_is_off_stays_so_and_is_not_turned_off_again(flag, sdk, pass_time):
    guard()
    disable_flag(*PLACE, caller=WHO)
    report_all(sdk, pass_time, [50])
    look(pass_time)
    assert AuditEvent.objects.filter(type="feature-environment-disabled").count() == 1


def test_without_numbers_the_flag_stays_on(flag, sdk, pass_time):
    guard(ERRORS | {"triggerCondition": {"operator": "<", "threshold": 1}})
    look(pass_time, 0)
    assert look(pass_time, 120)


def test_an_alert_turns_the_flag_off_and_while_it_fires_again(flag, pass_time):
    guard(ALERT)
    look(pass_time, 0)
    assert note_alert("Down", {}, fires=True, caller=Caller.system()) == 1
    assert not look(pass_time, 0)
    enable_flag(*PLACE, caller=WHO)
    look(pass_time)
    assert not look(pass_time)
    note_alert("Down", {}, fires=False, caller=Caller.system())
    enable_flag(*PLACE, caller=WHO)
    look(pass_time)
    assert look(pass_time)


def test_a_removed_one_and_one_of_an_archived_flag_do_nothing(flag, sdk, pass_time):
    safeguard = guard()
    look(pass_time, 0)
    report_all(sdk, pass_time, [50])
    remove_flag_safeguard(PLACE, safeguard.pk, caller=WHO)
    assert look(pass_time)
    guard()
    look(pass_time, 0)
    report_all(sdk, pass_time, [50])
    Flag.objects.update(archived_at=pass_time(timedelta(0)))
    assert look(pass_time)


def test_they_are_set_changed_and_removed_by_api(api, flag):
    owner, reader = api["owner"], api["reader"]
    assert owner.put(URL, ERRORS, format="json").status_code == 204
    [made] = reader.get(URL).json()
    assert made["action"] == {"type": "turnOff", "id": made["id"]}
    assert owner.put(URL, ERRORS | {"id": made["id"], "title": "E"}, format="json").status_code == 204
    assert [each["title"] for each in reader.get(URL).json()] == ["E"]
    assert owner.put(URL, {"impactMetric": {}}, format="json").status_code == 400
    assert owner.put(URL, ERRORS | {"id": "nowhere"}, format="json").status_code == 404
    assert owner.delete(f"{URL}/{made['id']}").status_code == 204
    assert owner.delete(f"{URL}/{made['id']}").status_code == 404
    types = ["safeguard-changed", "safeguard-changed", "safeguard-deleted"]
    events = AuditEvent.objects.filter(type__startswith="safeguard")
    assert list(events.order_by("pk").values_list("type", flat=True)) == types


def test_a_flag_has_few(flag):
    for _ in range(10):
        guard()
    with pytest.raises(ValidationError):
        guard()


# Where changes need a change request ------------------------------------------------------------------------


@pytest.fixture
def member(flag: Flag, people: Any) -> Caller:
    ProjectEnvironment.objects.filter(project="shop", environment="production").update(required_approvals=1)
    return Caller(user=people["member"])


def apply(refused: NeedsChangeRequest, caller: Caller) -> ChangeRequest:
    gated = refused.gated
    assert gated.changes is not None
    request = send_changes(gated.project, gated.environment, gated.changes, caller=caller)
    for state in ("Approved", "Applied"):
        set_state("shop", request.pk, state, caller=WHO)
    return request


def test_setting_and_removing_one_needs_a_request_which_is_offered(member, pass_time):
    with pytest.raises(NeedsChangeRequest) as refused:
        guard(ALERT, caller=member)
    assert not Safeguard.objects.exists()
    request = apply(refused.value, member)
    assert request.impact["changed"] == 0
    assert request.impact["ifBreached"]["changed"] == pytest.approx(5000, abs=200)
    [safeguard] = Safeguard.objects.all()
    note_alert("Down", {}, fires=True, caller=Caller.system())
    look(pass_time)
    assert not look(pass_time)
    assert skips() == []
    with pytest.raises(NeedsChangeRequest) as refused:
        remove_flag_safeguard(PLACE, safeguard.pk, caller=member)
    apply(refused.value, member)
    assert not Safeguard.objects.exists()


def skips() -> list[str]:
    """By whom."""
    events = AuditEvent.objects.filter(
        type="change-request-skipped", feature="cart", environment="production"
    )
    return list(events.values_list("actor_name", flat=True))


def test_who_may_skip_requests_sets_and_removes_one_which_is_recorded(member):
    skipping = WHO.asking(skips_requests=True)
    safeguard = guard(ALERT, caller=skipping)
    assert skips() == [WHO.name]
    remove_flag_safeguard(PLACE, safeguard.pk, caller=skipping)
    assert skips() == [WHO.name] * 2
    assert safeguard.approved


def test_one_that_was_set_before_requests_were_needed_acts_and_says_so(flag, people, browse, pass_time):
    guard(ALERT)
    before = "set before changes of production needed a change request"
    assert before not in page_text(browse("admin").get(PAGE))
    policy = {"environment": "production", "do": "approvals", "approvals": "1"}
    settings = page_text(browse("admin").post("/projects/shop/environments", policy, follow=True))
    assert "set before approvals were required, can still turn them off: cart." in settings
    approvals = browse("admin").get("/projects/shop/environments/production/approvals")
    assert "set before approvals were required, can still turn them off" in page_text(approvals)
    assert before in page_text(browse("admin").get(PAGE))
    note_alert("Down", {}, fires=True, caller=Caller.system())
    look(pass_time)
    assert not look(pass_time)
    assert skips() == ["Safeguard"]


# The page ---------------------------------------------------------------------------------------------------


def test_the_page_lists_adds_and_removes(browse, flag):
    owner = browse("owner")
    assert "No safeguards yet." in page_text(owner.get(PAGE))
    form = {"source": "internal", "metric": "errors", "aggregation": "count", "threshold": "3"}
    assert owner.post(PAGE, form).status_code == 302
    shown = page_text(owner.get(PAGE))
    assert "errors: waits for numbers. Count of errors over an hour must not be above 3." in shown
    assert owner.post(PAGE, form | {"threshold": "many"}).status_code == 400
    assert "Enter a threshold." in page_text(owner.post(PAGE, form | {"threshold": ""}))
    assert "Add a safeguard" not in page_text(browse("reader").get(PAGE))
    assert browse("reader").post(PAGE, form).status_code == 403
    assert owner.post(PAGE, {"remove": Safeguard.objects.get().pk}).status_code == 302
    assert not Safeguard.objects.exists()


def test_the_page_takes_labels_and_says_them(browse, flag):
    owner = browse("owner")
    alert = {"source": "alert", "metric": "Down", "labels": "severity=page, appName=web-shop,appName=app"}
    assert owner.post(PAGE, alert).status_code == 302
    assert Safeguard.objects.get().labels == {"severity": ["page"], "appName": ["web-shop", "app"]}
    shown = page_text(owner.get(PAGE))
    assert "Alert Down, only with appName web-shop or app and severity page, must not fire." in shown
    refused = owner.post(PAGE, alert | {"labels": "severity"})
    assert refused.status_code == 400
    assert "must be like appName=web-shop, severity=page, not severity" in page_text(refused)


def test_the_page_sends_it_for_review_where_that_is_needed(browse, member):
    editor = browse("member")
    form = {"source": "alert", "metric": "Down"}
    assert "Send for review" in editor.post(PAGE, form).content.decode()
    sent = editor.post(PAGE, form | {"send_for_review": "yes"})
    request = ChangeRequest.objects.get()
    assert sent.url == f"/projects/shop/change-requests/{request.pk}/"
    assert "Have a safeguard turn cart off" in page_text(editor.get(sent.url))
