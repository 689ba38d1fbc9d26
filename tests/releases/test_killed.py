"""A worker, or the database server's process, that is killed at any write leaves nothing half made: the next one does it.

Each attempt is made in a process of its own, which dies before one of its writes or its commit.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from projects.models import Strategy
from releases.derive import ProposedChange
from releases.models import ChangeRequest, Milestone, ReleasePlan
from releases.plans.due import look_at_due
from releases.requests.propose import send_changes
from releases.requests.states import set_state
from releases.schedules.actions import schedule_request
from releases.schedules.due import apply_due
from tests.support.cast import make_user
from tests.support.change_requests import guarded
from tests.support.plans import Move, cart, rollout_of, started, strategy_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes, pytest.mark.exhaustive]
WHO = Caller.system()
WRITES = ("INSERT", "UPDATE", "DELETE")
MAX_WRITES = 60


class Killer:
    """Kills this process, or its database's, before the write with a number; the commits count too."""

    def __init__(self, write: int, kill: Callable[[], None]) -> None:
        self.left, self.kill = write, kill

    def count(self) -> None:
        if self.left == 0:
            self.kill()
        self.left -= 1

    def __call__(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        if str(sql).lstrip().upper().startswith(WRITES):
            self.count()
        return execute(sql, params, many, context)


def kill_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_database() -> None:
    """As if its server process had been killed: PostgreSQL rolls back what that has not committed."""
    backend = connection.connection.info.backend_pid
    with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [backend])


def is_killed(action: Callable[[], Any], write: int, kill: Callable[[], None]) -> bool:
    """Whether a process that did the action was killed before so many writes, rather than done with it."""
    process = os.fork()
    if process == 0:
        _run(action, Killer(write, kill))
    _, status = os.waitpid(process, 0)
    return status != 0


def _run(action: Callable[[], Any], killer: Killer) -> None:
    """In the new process, with a connection of its own. Never returns."""
    del connections["default"]
    connections.settings["default"]["OPTIONS"].pop("pool")  # its connections are this process's parent's
    every: Any = BaseDatabaseWrapper
    commit = every._commit

    def commit_counted(wrapper: Any) -> Any:
        killer.count()
        return commit(wrapper)

    every._commit = commit_counted
    with suppress(BaseException), connection.execute_wrapper(killer):
        action()
    os._exit(1 if killer.left < 0 else 0)


def kill_at_each_write(
    action: Callable[[], Any], kill: Callable[[], None], look: Callable[[], Any], again: Callable[[], Any]
) -> Iterator[int]:
    """The writes before which it was killed, until it is done."""
    before = look()
    for write in range(MAX_WRITES):
        if not is_killed(action, write, kill):
            return
        assert look() == before, f"killed before write {write}"
        yield write
        again()
    raise AssertionError("it is never done")


KILLS = pytest.mark.parametrize("kill", [kill_worker, kill_database])


def look() -> Any:
    """What must not change by halves. A claim for a minute is none."""
    plans = ReleasePlan.objects.values("active", "state", "since", "strategy_ids")
    return [
        list(Strategy.objects.order_by("pk").values_list("parameters", "title")),
        list(ChangeRequest.objects.values("state", "schedule__status", "schedule__reason")),
        list(plans.order_by("pk")),
        list(Milestone.objects.order_by("pk").values_list("started_at", "passed_at")),
        AuditEvent.objects.count(),
    ]


@pytest.fixture
def approved(shop: Any) -> ChangeRequest:
    """A request of three changes."""
    guarded(0)
    cart(5)
    stored = strategy_of()
    changes = [
        ProposedChange("cart", "updateStrategy", {"id": str(stored.pk), "title": "First"}),
        ProposedChange("cart", "addStrategy", {"name": "default", "title": "Second"}),
        ProposedChange("cart", "updateEnabled", {"enabled": False}),
    ]
    return send_changes("shop", "production", changes, caller=WHO)


def check_applied() -> None:
    assert ChangeRequest.objects.get().state == "Applied"
    assert set(Strategy.objects.values_list("title", flat=True)) == {"First", "Second"}
    assert Strategy.objects.count() == 2


@KILLS
def test_applying(approved: ChangeRequest, kill: Callable[[], None]) -> None:
    writes = list(
        kill_at_each_write(
            lambda: set_state("shop", approved.pk, "Applied", caller=WHO), kill, look, again=lambda: None
        )
    )
    assert len(writes) > 4
    check_applied()


@KILLS
def test_a_schedule(approved: ChangeRequest, pass_time: Move, kill: Callable[[], None]) -> None:
    now = pass_time(timedelta())
    rita = Caller(user=make_user("rita", root_role=1))
    schedule_request("shop", approved.pk, now + timedelta(minutes=5), caller=rita)
    pass_time(timedelta(minutes=5))
    assert len(list(kill_at_each_write(apply_due, kill, look, again=lambda: None))) > 4
    check_applied()


@KILLS
def test_the_next_milestone(shop: Any, pass_time: Move, kill: Callable[[], None]) -> None:
    cart(5)
    started(10, 50, 100)
    pass_time(timedelta(days=1))

    def wait_for_claim() -> None:
        pass_time(timedelta(minutes=1))

    assert len(list(kill_at_each_write(look_at_due, kill, look, again=wait_for_claim))) > 4
    assert rollout_of() == 50
    assert AuditEvent.objects.filter(type="release-plan-milestone-started").count() == 2
