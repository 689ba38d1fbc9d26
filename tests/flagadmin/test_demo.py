"""`manage.py demo` loads its data once, with a flag for each reason for a result."""

from datetime import timedelta

import pytest
from django.db.models import Sum
from django.utils import timezone

from flagadmin.console.attention import list_attention
from flagadmin.core.audit.models import AuditEvent
from flagadmin.demo.definitions import import_body
from flagadmin.demo.flags import ENVIRONMENTS, FLAGS, VISITOR
from flagadmin.demo.load import create_key, load_demo, set_first_password
from groups.access import Caller
from groups.models import Group, User
from importer.body.schemas import read_body
from importer.plan.build import plan_import
from integrations.models import Integration, SignalSource
from playground.engine.operators import OPERATORS
from playground.models import UserRun
from projects.flags.insights.evaluations import (
    read_evaluations_by_day,
    read_evaluations_by_hour,
)
from projects.models import Environment, FavoriteFlag, Flag, Segment, Strategy, UsageTotal
from tests.support.cast import client
from tests.support.demo import loaded_demo

__all__ = ["loaded_demo"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(loaded_demo, db):
    return User.objects.get(pk=loaded_demo.pk)


def test_what_is_there(admin):
    assert Flag.objects.count() == sum(map(len, FLAGS.values()))
    assert Flag.objects.archived().count() == 3
    assert Group.objects.count() == 3
    assert User.objects.filter(is_service=True).count() == 1
    constraints = [c for strategy in Strategy.objects.all() for c in strategy.constraints]
    constraints += [c for segment in Segment.objects.all() for c in segment.constraints]
    assert set(OPERATORS) == {constraint["operator"] for constraint in constraints}


def test_a_second_run_changes_nothing(admin):
    Flag.objects.filter(name="dark-theme").update(description="changed by somebody")
    events = AuditEvent.objects.count()
    load_demo()
    assert AuditEvent.objects.count() == events
    assert Flag.objects.get(name="dark-theme").description == "changed by somebody"


def test_a_second_run_leaves_added_environments_alone(admin):
    Environment.objects.create(name="canary", type="test")
    load_demo()
    assert not Strategy.objects.filter(environment="canary").exists()


def test_every_page_has_something_to_show(admin):
    caller, now = Caller(user=admin), timezone.now()
    kinds = {item.kind for item in list_attention(caller)}
    assert kinds == {"expectation", "import", "token", "stale", "sdk"}
    assert UsageTotal.objects.aggregate(total=Sum("yes"))["total"] > 100_000
    flag = Flag.objects.get(name="search-v2")
    by_day = read_evaluations_by_day(flag.pk, ["production"])["production"]
    assert all(count.yes for count in by_day.counts[:-1])
    assert set(by_day.variants) == {"ranker-a", "ranker-b"}
    assert (
        sum(
            1 for count in read_evaluations_by_hour(flag.pk, ["production"])["production"].counts if count.yes
        )
        > 22
    )
    assert FavoriteFlag.objects.filter(user=admin).count() == 4
    assert len({event.created_at.date() for event in AuditEvent.objects.all()}) > 8
    yesterday = now.date() - timedelta(days=1)
    assert AuditEvent.objects.filter(created_at__date=yesterday, type="feature-strategy-update").exists()


def test_its_incident_leads_to_the_change_of_the_last_day(admin):
    run = UserRun.objects.get(caller_id=admin.pk, kind=UserRun.Kind.INCIDENT)
    answer = client(create_key(admin, now=timezone.now())).get(f"/api/admin/playground/users/{run.pk}").json()
    first = answer["found"]["changes"][0]
    assert (first["flags"][0]["name"], first["noticed"]["affected"], first["isLikely"]) == (
        "one-click-pay",
        60,
        True,
    )


def test_whoever_changed_something_was_seen(admin):
    events = (
        AuditEvent.objects.exclude(actor_id=None).order_by("created_at").values_list("actor_id", "created_at")
    )
    changed = dict(events)
    people = User.objects.filter(is_service=False)
    assert {user.pk: user.seen_at for user in people if user.pk in changed} == {
        user.pk: changed[user.pk] for user in people if user.pk in changed
    }
    assert len(changed) > 3


def test_its_integration_is_off_and_its_monitoring_has_left_a_note(admin):
    integration, source = Integration.objects.get(), SignalSource.objects.get()
    assert not integration.enabled
    assert [delivery.state for delivery in integration.deliveries.order_by("id")] == [
        "success",
        "success",
        "failed",
    ]
    assert [rule.then for rule in source.rules.all()] == ["turnOff", "note"]
    [signal] = source.signals.all()
    assert [(result["flag"], result["result"]) for result in signal.results] == [("coupon-stacking", "noted")]
    assert AuditEvent.objects.get(type="signal-received").feature == "coupon-stacking"
    # Whoever has removed them does not get them back.
    integration.delete()
    load_demo()
    assert not Integration.objects.exists()


def test_the_past_leads_to_the_flags_as_they_are_defined(admin):
    for project, flags in FLAGS.items():
        for environment in ENVIRONMENTS:
            body = read_body(import_body(project, environment, flags, story_segments()))
            counts = plan_import(body, caller=Caller.system()).counts
            assert not counts.get("create"), project
            assert counts.get("change", 0) == (1 if project == "platform" else 0), project  # a tag was added


def story_segments():
    return dict(Segment.objects.values_list("name", "id"))


def test_one_flag_of_each_reason(admin):
    body = {"environment": "production", "context": VISITOR}
    answer = client(create_key(admin, timezone.now())).post("/api/admin/playground", body).json()
    flags = {flag["name"]: flag for flag in answer["features"]}
    reasons = {name: flags[name]["reason"] for name in ("dark-theme", "beta-dashboard", "gift-cards")}
    assert "bucket 53 and the rollout stops at 50 %" in reasons["dark-theme"]
    assert "beta-testers" in reasons["beta-dashboard"]
    assert "checkout-redesign" in reasons["gift-cards"]
    assert flags["image-cdn-switch"]["strategies"]["result"] == "unknown"
    assert flags["search-v2"]["variant"]["name"] == "ranker-b"


def test_a_later_run_keeps_the_password_and_earlier_tokens(admin):
    password, first = set_first_password(admin), create_key(admin, timezone.now())
    assert set_first_password(admin) is None
    second = create_key(admin, timezone.now())
    admin.refresh_from_db()
    assert admin.check_password(password)
    for key in (first, second):
        assert client(key).get("/api/admin/user").status_code == 200


def test_without_passwords_none_is_set(admin, settings):
    settings.PASSWORD_LOGIN = False
    assert set_first_password(admin) is None
