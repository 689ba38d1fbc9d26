"""Scheduled requests are applied at their time, once, whatever servers and databases do; or the page says why not."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import Conflict
from flagadmin.core.hook import later
from flagadmin.core.installation.models import Installation
from groups.access import Caller
from groups.models import RolePermission, User
from projects.models import Flag, FlagEnvironment, Project, ProjectEnvironment, Strategy
from releases.derive import ProposedChange
from releases.models import ChangeRequest, Schedule
from releases.requests.approvals import lock_project
from releases.requests.propose import add_changes
from releases.requests.states import set_state
from releases.schedules.actions import cancel_schedule, schedule_request
from releases.schedules.due import apply_due
from tests.support.change_requests import person
from tests.support.flags import is_on
from tests.support.live_server import PATIENCE
from tests.support.plans import Move
from tests.support.playground import live_flag
from tests.support.racing import BEFORE_COMMIT, Racer, together

pytestmark = pytest.mark.django_db(transaction=True)
OFF = ProposedChange("cart", "updateEnabled", {"enabled": False})


@pytest.fixture
def cart(shop: Any) -> Flag:
    """On in production, where changes need a request without approvals."""
    links = ProjectEnvironment.objects.filter(project="shop", environment="production")
    links.update(required_approvals=0)
    return live_flag("cart", strategies=[{"name": "default"}])


@pytest.fixture
def ana(cart: Flag) -> Caller:
    """Somebody who may apply requests in production of the shop."""
    return Caller(user=person("ana", "APPLY_CHANGE_REQUEST"))


def scheduled(caller: Caller, *changes: ProposedChange, minutes: int = 10) -> ChangeRequest:
    request = add_changes("shop", "production", changes or [OFF], caller=caller)
    set_state("shop", request.pk, "In review", caller=caller)
    at = timezone.now() + timedelta(minutes=minutes)
    return schedule_request("shop", request.pk, at, caller=caller)


def outcome() -> tuple[str, str, str]:
    request = ChangeRequest.objects.select_related("schedule").get()
    return request.state, request.schedule.status, request.schedule.reason


def applied_events() -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(type="change-request-scheduled-application-success"))


def test_it_is_applied_at_its_time_and_not_before(ana: Caller, pass_time: Move) -> None:
    scheduled(ana)
    pass_time(timedelta(minutes=10, seconds=-1))
    apply_due()
    assert is_on()
    pass_time(timedelta(seconds=1))
    apply_due()
    assert not is_on()
    assert outcome() == ("Applied", "done", "")
    [event] = applied_events()
    assert event.actor_name == "ana"
    assert "late" not in event.comment


def test_two_servers_apply_it_once(ana: Caller, pass_time: Move) -> None:
    scheduled(ana, ProposedChange("cart", "addStrategy", {"name": "default", "title": "Second"}))
    pass_time(timedelta(minutes=10))
    together(*[apply_due] * 4)
    assert Strategy.objects.filter(flag__name="cart", title="Second").count() == 1
    assert len(applied_events()) == 1


def test_a_server_that_dies_before_its_commit_leaves_it_to_the_next(ana: Caller, pass_time: Move) -> None:
    scheduled(ana)
    pass_time(timedelta(minutes=10))
    dying = Racer(apply_due, BEFORE_COMMIT)
    dying.start()
    assert dying.reached.wait(PATIENCE)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [dying.pid])
    assert is_on()
    apply_due()
    dying.go.set()
    dying.join(PATIENCE)
    assert not is_on()
    assert len(applied_events()) == 1


def test_a_project_that_somebody_else_changes_is_left_for_the_next_time(
    ana: Caller, pass_time: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduled(ana)
    scheduled(ana, ProposedChange("cart", "addStrategy", {"name": "default"}))
    pass_time(timedelta(minutes=10))
    monkeypatch.setattr("releases.attempts.LOCK_WAIT", "1ms")
    waited = Mock(wraps=lock_project)
    monkeypatch.setattr("releases.schedules.due.lock_project", waited)
    elsewhere = connection.copy()
    elsewhere.set_autocommit(False)
    try:
        with elsewhere.cursor() as cursor:
            cursor.execute("SELECT id FROM projects_project WHERE id = 'shop' FOR NO KEY UPDATE")
            apply_due()
        assert waited.call_count == 1, "each request of the project has been waited for"
        assert {*Schedule.objects.values_list("request__state", "status")} == {("Scheduled", "pending")}
        elsewhere.rollback()
    finally:
        elsewhere.close()
    apply_due()
    assert {*Schedule.objects.values_list("request__state", "status")} == {("Applied", "done")}


def test_one_that_could_not_be_applied_in_time_says_how_late_it_is(ana: Caller, pass_time: Move) -> None:
    scheduled(ana)
    pass_time(timedelta(minutes=22))
    apply_due()
    assert outcome()[0] == "Applied"
    assert applied_events()[0].comment.endswith("(scheduled, 12 minutes late)")


def test_one_that_was_missed_by_more_than_an_hour_is_suspended(ana: Caller, pass_time: Move) -> None:
    at = scheduled(ana).schedule.at
    pass_time(timedelta(minutes=71))
    apply_due()
    due = f"It was due on {at.day} {at:%b %Y at %H:%M} UTC and could not be applied within an hour: it is 61 minutes late."
    assert outcome() == ("Scheduled", "suspended", due)
    assert is_on()


def archive() -> None:
    Flag.objects.filter(name="cart").update(archived_at=timezone.now())


def delete_ana() -> None:
    User.objects.filter(username="ana").delete()


def disable_ana() -> None:
    User.objects.filter(username="ana").update(is_active=False)


def take_permission() -> None:
    """Also of authors, who need none to apply what needs no approval."""
    ChangeRequest.objects.update(author=None, author_name="eve")
    RolePermission.objects.filter(permission="APPLY_CHANGE_REQUEST").delete()


def turn_off() -> None:
    FlagEnvironment.objects.filter(flag__name="cart", environment="production").update(enabled=False)


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (archive, "cart has been archived."),
        (turn_off, "Change 1 (Turn cart off): it has been changed since this was proposed."),
        (delete_ana, "ana, who scheduled it, has been deleted."),
        (disable_ana, "ana, who scheduled it, can no longer log in."),
        (
            take_permission,
            "ana, who scheduled it, may not apply it any more. "
            'You need the "Apply change requests" permission in Shop (production).',
        ),
    ],
)
def test_what_happened_meanwhile_suspends_it(
    ana: Caller, pass_time: Move, happens: Callable[[], None], reason: str
) -> None:
    scheduled(ana)
    happens()
    before = read_flag()
    pass_time(timedelta(minutes=10))
    apply_due()
    apply_due()
    assert outcome() == ("Scheduled", "suspended", reason)
    assert read_flag() == before
    event = AuditEvent.objects.get(type="change-request-schedule-suspended")
    assert (event.comment, event.actor_name) == (reason, "flagadmin")


def read_flag() -> list[Any]:
    return list(FlagEnvironment.objects.order_by("pk").values())


def test_what_cannot_be_applied_fails_with_its_reason_and_can_be_scheduled_again(
    ana: Caller, pass_time: Move
) -> None:
    request = scheduled(ana)
    Project.objects.filter(pk="shop").update(archived_at=timezone.now())
    pass_time(timedelta(minutes=10))
    apply_due()
    assert outcome() == ("Scheduled", "failed", "Project shop is archived. Revive it first.")
    assert is_on()
    Project.objects.filter(pk="shop").update(archived_at=None)
    schedule_request("shop", request.pk, timezone.now() + timedelta(minutes=1), caller=ana)
    assert outcome() == ("Scheduled", "pending", "")
    pass_time(timedelta(minutes=1))
    apply_due()
    assert outcome()[0] == "Applied"


def test_one_that_fails_holds_up_no_other(ana: Caller, pass_time: Move) -> None:
    live_flag("other", strategies=[{"name": "default"}])
    scheduled(ana)
    scheduled(ana, ProposedChange("other", "updateEnabled", {"enabled": False}), minutes=11)
    turn_off()
    pass_time(timedelta(minutes=11))
    apply_due()
    assert not is_on("other")


def test_maintenance_and_the_lack_of_a_database_delay_it(ana: Caller, pass_time: Move, caplog: Any) -> None:
    scheduled(ana)
    pass_time(timedelta(minutes=10))
    Installation.objects.update(is_in_maintenance=True)
    apply_due()
    assert outcome()[:2] == ("Scheduled", "pending")
    Installation.objects.update(is_in_maintenance=False)

    def absent(*args: Any) -> Any:
        raise OperationalError("the database is away")

    with connection.execute_wrapper(absent):
        apply_due()
        apply_due()
    assert caplog.text.count("wait for the database") == 1
    apply_due()
    assert outcome()[0] == "Applied"


def test_a_cancelled_schedule_is_not_applied(ana: Caller, pass_time: Move) -> None:
    request = scheduled(ana)
    assert cancel_schedule("shop", request.pk, caller=ana).state == "Approved"
    pass_time(timedelta(minutes=10))
    apply_due()
    assert is_on()
    assert not Schedule.objects.exists()


def test_the_author_of_one_that_needs_no_approval_needs_their_own_permissions_then_too(
    cart: Flag, pass_time: Move
) -> None:
    scheduled(Caller(user=person("bob", "UPDATE_FEATURE_ENVIRONMENT")))
    RolePermission.objects.filter(permission="UPDATE_FEATURE_ENVIRONMENT", role__name="role of bob").delete()
    pass_time(timedelta(minutes=10))
    apply_due()
    state, status, reason = outcome()
    assert (state, status) == ("Scheduled", "suspended")
    assert reason.startswith("bob, who scheduled it, may not do this any more. You need")
    assert is_on()


def test_one_that_changes_something_else_by_then_is_suspended(ana: Caller, pass_time: Move) -> None:
    ProjectEnvironment.objects.filter(environment="production").update(
        required_approvals=2, approval_rules=[{"condition": "onlyTurnsOff", "requiredApprovals": 0}]
    )
    request = scheduled(ana)
    ProjectEnvironment.objects.filter(environment="production").update(approval_rules=[])
    pass_time(timedelta(minutes=10))
    apply_due()
    assert outcome() == ("Scheduled", "suspended", "It needs 2 approvals now and has 0.")
    with pytest.raises(Conflict, match="was not scheduled: it needs 2 approvals"):
        schedule_request("shop", request.pk, timezone.now() + timedelta(minutes=5), caller=ana)
    request.refresh_from_db()
    assert request.state == "In review"
    assert not Schedule.objects.exists()


def test_threads_of_the_server_look_for_what_is_due_in_an_index(ana: Caller, pass_time: Move) -> None:
    request = scheduled(ana)
    rows = [
        ChangeRequest(project_id="shop", environment_id="production", author_name="x") for _ in range(2_000)
    ]
    made = ChangeRequest.objects.bulk_create(rows)
    at = request.schedule.at + timedelta(days=1)
    Schedule.objects.bulk_create(Schedule(request=row, at=at, by_name="x") for row in made)
    due = Schedule.objects.filter(status="pending", at__lte=timezone.now()).order_by("at", "id")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE releases_schedule")
    assert "pending_schedules" in due.values_list("pk")[:100].explain()

    from flagadmin.core.server import background_tasks

    tasks = [
        task for task in background_tasks._periodic if task.task is later("releases.schedules.due:apply_due")
    ]
    assert [(task.everywhere, task.interval) for task in tasks] == [(True, timedelta(seconds=1))]
