"""POST /api/signals/NAME: what rules do, once, and with whose rights."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.models import Grant, User
from integrations.models import Signal, SignalDone
from integrations.signals.actions import save_rule
from integrations.signals.receive import MAX_SIGNALS, delete_old_signals
from projects.flags.actions import NewFlag, create_flag
from projects.flags.archive.actions import archive_flags
from projects.flags.environments.actions import enable_flag
from projects.models import FlagEnvironment, ProjectEnvironment
from tests.support.cast import client
from tests.support.page_text import page_text
from tests.support.plans import PLACE, reload, started
from tests.support.signals import TOKEN, make_alert, make_body, make_rule, make_source

pytestmark = pytest.mark.django_db
URL = "/api/signals/monitoring"


@pytest.fixture
def cart(shop, callers):
    flag = create_flag("shop", NewFlag(name="cart"), caller=callers("admin"))
    enable_flag("shop", "cart", "production", caller=callers("admin"))
    return flag


@pytest.fixture
def source(db):
    return make_source()


def send(body, token=TOKEN, status=202, url=URL):
    answer = client(token).post(url, body)
    assert answer.status_code == status, answer.content
    return answer.json()


def results(body):
    return [result["result"] for result in send(body)["results"]]


def is_on(environment="production"):
    return FlagEnvironment.objects.get(flag__name="cart", environment=environment).enabled


def test_a_firing_alert_turns_the_flag_off_and_says_why(cart, source, people, browse):
    make_rule(source, author=people["member"])
    assert send(make_body(make_alert()))["results"] == [
        {
            "rule": "Checkout fails",
            "project": "shop",
            "flag": "cart",
            "environment": "production",
            "result": "turnedOff",
        }
    ]
    assert not is_on()
    off, noted = AuditEvent.objects.order_by("-id")[:2][::-1]
    assert (off.type, off.actor_name) == ("feature-environment-disabled", "member")
    assert off.comment == "Signal of monitoring: 5 % of checkouts fail"
    assert (noted.type, noted.feature, noted.after["rule"]) == ("signal-received", "cart", "Checkout fails")
    page = page_text(browse("viewer").get("/projects/shop/features/cart/"))
    assert "Signal of monitoring: 5 % of checkouts fail" in page
    assert "received a signal from monitoring" in page


def test_an_alert_that_goes_on_acts_once_and_a_new_one_again(cart, source, people, callers):
    make_rule(source, author=people["member"])
    send(make_body(make_alert()))
    enable_flag("shop", "cart", "production", caller=callers("admin"))
    assert results(make_body(make_alert())) == ["repeated"]
    assert is_on()
    assert results(make_body(make_alert(startsAt="2026-11-25T12:00:00Z"))) == ["turnedOff"]
    assert results(make_body(make_alert(startsAt="2026-11-25T13:00:00Z"))) == ["wasOff"]


def test_a_rule_that_now_does_something_else_acts_for_an_alert_that_goes_on(cart, source, people, callers):
    """As whoever has seen the note wants it, while the alert is firing."""
    rule = make_rule(source, author=people["admin"], then="note")
    assert results(make_body(make_alert())) == ["noted"]
    values = {name: getattr(rule, name) for name in ("match", "project", "flag", "environment", "enabled")}
    for changed, result in (
        ({"name": "Renamed", "then": "note"}, "repeated"),
        ({"name": "Renamed", "then": "turnOff"}, "turnedOff"),
    ):
        save_rule(source.pk, values | changed, rule_id=rule.pk, caller=callers("admin"))
        assert results(make_body(make_alert())) == [result]
    assert results(make_body(make_alert())) == ["repeated"]


def test_a_note_changes_nothing(cart, source, people):
    make_rule(source, author=people["member"], then="note")
    assert results(make_body(make_alert())) == ["noted"]
    assert is_on()
    assert AuditEvent.objects.filter(type="signal-received", feature="cart").count() == 1


def test_any_json_of_a_generic_source(cart, people):
    make_rule(make_source("script", "generic"), author=people["member"], match={"check.state": "bad"})
    assert send({"check": {"state": "good"}}, url="/api/signals/script") == {"results": []}
    assert send({"check": {"state": "bad"}}, url="/api/signals/script")["results"][0]["result"] == "turnedOff"
    assert Signal.objects.count() == 2


def test_long_ids_are_different_wherever_they_differ(cart, people):
    make_rule(make_source("script", "generic"), author=people["member"], match={"id": "*"})
    done = [send({"id": "x" * 300 + end}, url="/api/signals/script")["results"][0]["result"] for end in "aba"]
    assert done == ["turnedOff", "wasOff", "repeated"]


@pytest.mark.parametrize("fields", [{"enabled": False}, {"match": {"labels.alertname": "Other"}}])
def test_rules_that_do_not_act(cart, source, people, fields):
    make_rule(source, author=people["member"], **fields)
    assert results(make_body(make_alert())) == []
    assert is_on()


def test_a_resolved_alert_does_nothing(cart, source, people):
    make_rule(source, author=people["member"])
    assert results(make_body(make_alert(status="resolved"))) == []


# Rights -------------------------------------------------------------------------------------------------------


def test_a_rule_has_the_rights_that_its_author_has_now(cart, source, people):
    rule = make_rule(source, author=people["member"])
    Grant.objects.filter(user=people["member"]).delete()
    [refused] = send(make_body(make_alert()))["results"]
    assert refused["result"] == "refused"
    assert is_on()
    people["member"].delete()
    rule.refresh_from_db()
    assert "Save the rule again" in send(make_body(make_alert()))["results"][0]["why"]


def test_a_rule_of_somebody_who_was_deactivated_says_so(cart, source, people):
    make_rule(source, author=people["member"])
    User.objects.filter(pk=people["member"].pk).update(is_active=False)
    [refused] = send(make_body(make_alert()))["results"]
    assert refused["result"] == "refused"
    assert refused["why"] == "The account that saved this rule was deactivated. Save the rule again."
    assert is_on()


def test_what_was_refused_is_tried_again_when_the_alert_is_repeated(cart, source, people):
    rule = make_rule(source, author=people["reader"])
    assert results(make_body(make_alert())) == ["refused"]
    rule.author = people["member"]
    rule.save()
    assert results(make_body(make_alert())) == ["turnedOff"]


@pytest.mark.django_db(transaction=True)
def test_where_changes_need_a_request_only_who_may_skip_it_turns_off(cart, source, people):
    ProjectEnvironment.objects.filter(environment="production").update(required_approvals=1)
    rule = make_rule(source, author=people["member"])
    [refused] = send(make_body(make_alert()))["results"]
    assert (refused["result"], is_on()) == ("refused", True)
    rule.author = people["admin"]
    rule.save()
    assert results(make_body(make_alert())) == ["turnedOff"]


def test_a_rule_of_a_flag_that_has_gone_keeps_no_other_from_acting(cart, source, people, callers):
    make_rule(source, author=people["member"], name="first", flag="gone")
    make_rule(source, author=people["member"], name="second")
    assert results(make_body(make_alert())) == ["refused", "turnedOff"]
    archive_flags("shop", ["cart"], caller=callers("admin"))
    assert results(make_body(make_alert(fingerprint="other"))) == ["refused", "refused"]


# Refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [None, "", "nonsense", "signal_of_another"])
def test_another_token(source, token):
    send(make_body(), token=token, status=401)
    assert not Signal.objects.exists()


def test_a_source_that_there_is_not(source):
    send({}, url="/api/signals/nowhere", status=401)


def test_no_token_of_the_api_works_and_the_source_s_works_nowhere_else(source, api):
    assert api["admin"].post(URL, {}).status_code == 401
    assert client(TOKEN).get("/api/admin/projects").status_code == 401


@pytest.mark.parametrize("body", [[], "x", None, {}, {"alerts": "x"}])
def test_bodies_that_are_refused(source, body):
    assert send(body, status=400)["name"] == "ValidationError"
    assert not Signal.objects.exists()


def test_many_within_a_minute(source):
    Signal.objects.bulk_create(Signal(source=source, body={}) for _ in range(MAX_SIGNALS))
    refused = client(TOKEN).post(URL, make_body())
    assert (refused.status_code, refused["Retry-After"]) == (429, "60")
    Signal.objects.update(received_at=timezone.now() - timedelta(minutes=2))
    send(make_body())


def test_of_a_source_that_sends_much_the_last_ones_are_kept(source, people):
    """Whoever has its token must not fill the disk."""
    other = make_source("other")
    long_ago = timezone.now() - timedelta(days=1)
    Signal.objects.bulk_create(
        Signal(source=each, body={"number": number}, received_at=long_ago)
        for each in (source, other)
        for number in range(150)
    )
    send(make_body(make_alert()))
    kept = list(source.signals.all())
    assert len(kept) == 100
    assert "alerts" in kept[0].body
    assert [signal.body["number"] for signal in kept[1:]] == list(range(149, 50, -1))
    assert other.signals.count() == 150


def test_during_maintenance_it_is_to_be_sent_again(cart, source, people, api):
    make_rule(source, author=people["member"])
    api["admin"].post("/api/admin/maintenance", {"enabled": True})
    send(make_body(make_alert()), status=503)
    api["admin"].post("/api/admin/maintenance", {"enabled": False})
    assert results(make_body(make_alert())) == ["turnedOff"]


def test_after_a_month_signals_are_forgotten(cart, source, people):
    make_rule(source, author=people["member"])
    send(make_body(make_alert()))
    old = timezone.now() - timedelta(days=31)
    Signal.objects.update(received_at=old)
    SignalDone.objects.update(at=old)
    delete_old_signals()
    assert not Signal.objects.exists()
    assert not SignalDone.objects.exists()


def test_an_alert_that_goes_on_for_more_than_a_month_acts_once(cart, source, people):
    make_rule(source, author=people["member"])
    seen = []
    for _ in range(3):
        seen += results(make_body(make_alert()))
        SignalDone.objects.update(at=F("at") - timedelta(days=20))
        delete_old_signals()
    assert seen == ["turnedOff", "repeated", "repeated"]


# Release plans ------------------------------------------------------------------------------------------------


def test_a_release_plan_is_paused(cart, source, people):
    make_rule(source, author=people["member"], then="pausePlan")
    assert results(make_body(make_alert())) == ["noRunningPlan"]
    plan = started(10, 50, place=PLACE)
    assert results(make_body(make_alert(fingerprint="another"))) == ["paused"]
    plan = reload(plan)
    assert (plan.state, plan.reason) == ("paused", "A signal of monitoring has paused it.")
    assert is_on()
