"""`manage.py demo` loads its data once, with a flag for each reason for a result."""

import pytest

from flagadmin.audit.models import AuditEvent
from flagadmin.demo.flags import FLAGS, VISITOR
from flagadmin.demo.load import fresh_key, fresh_password, load_demo
from groups.models import Group, User
from playground.engine.operators import OPERATORS
from projects.models import Environment, Flag, Segment, Strategy
from tests.support.cast import client

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin():
    return load_demo()


def test_what_is_there(admin):
    assert Flag.objects.count() == sum(map(len, FLAGS.values()))
    assert Flag.objects.exclude(archived_at=None).count() == 3
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


def test_one_flag_of_each_reason(admin):
    body = {"environment": "production", "context": VISITOR}
    answer = client(fresh_key(admin)).post("/api/admin/playground", body).json()
    flags = {flag["name"]: flag for flag in answer["features"]}
    reasons = {name: flags[name]["reason"] for name in ("dark-theme", "beta-dashboard", "gift-cards")}
    assert "bucket 53 and the rollout stops at 50 %" in reasons["dark-theme"]
    assert "beta-testers" in reasons["beta-dashboard"]
    assert "checkout-redesign" in reasons["gift-cards"]
    assert flags["image-cdn-switch"]["strategies"]["result"] == "unknown"
    assert flags["search-v2"]["variant"]["name"] == "ranker-b"


def test_an_earlier_runs_key_and_password_end(admin):
    password, first = fresh_password(admin), fresh_key(admin)
    fresh_password(admin)
    second = fresh_key(admin)
    admin.refresh_from_db()
    assert not admin.check_password(password)
    assert client(first).get("/api/admin/user").status_code == 401
    assert client(second).get("/api/admin/user").status_code == 200
