"""All events of a transaction have one time: no moment in the past shows a part of a change."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.db import transaction

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.record import Event, copy_all, read_transaction_time, record, record_selected
from groups.access import Caller
from importer.apply.execute import import_body
from importer.apply.undo import undo_import
from importer.body.schemas import read_body
from importer.models import ImportRun
from projects.definitions import read_definitions
from projects.deletion.execute import delete_project
from projects.flags.actions import NewFlag, change_tags_of_many, create_flag, set_stale
from projects.flags.archive import actions as archive
from projects.flags.copies import move
from projects.flags.dependencies import actions as dependencies
from projects.flags.environments.actions import enable_flag, switch_flags
from projects.history.definitions_at import read_changed_since
from projects.models import Flag
from projects.reverts.actions import revert_flag
from tests.support.cast import make_project
from tests.support.import_bodies import body
from tests.support.racing import BEFORE_COMMIT, BEFORE_LOCK, race

pytestmark = pytest.mark.django_db(transaction=True)
WHO = Caller.system()
NAMES = [f"flag-{number:03}" for number in range(40)]


@pytest.fixture
def flags() -> list[str]:
    make_project("shop")
    make_project("docs")
    for name in NAMES:
        create_flag("shop", NewFlag(name=name), caller=WHO)
    return NAMES


def moments(work: Callable[[], object]) -> list[datetime]:
    """The times of the events that this records, in their order."""
    last = AuditEvent.objects.order_by("-id").values_list("id", flat=True).first() or 0
    work()
    return list(AuditEvent.objects.filter(id__gt=last).order_by("id").values_list("created_at", flat=True))


def on_at(moment: datetime) -> int:
    then = read_changed_since(["shop"], "production", moment).applied(
        read_definitions(["shop"], "production")
    )
    return sum(flag["enabled"] for flag in then.flags)


def test_a_bulk_switch_is_seen_as_a_whole(flags: list[str]) -> None:
    on = moments(lambda: switch_flags({"shop": flags}, "production", True, caller=WHO))
    off = moments(lambda: switch_flags({"shop": flags}, "production", False, caller=WHO))
    assert len(on) == 2 * len(flags)  # each with its default strategy
    assert len(off) == len(flags)
    smallest = timedelta(microseconds=1)
    seen = [on_at(at + step) for at in {*on, *off} for step in (-smallest, timedelta(), smallest)]
    assert set(seen) == {0, len(flags)}
    assert [on_at(at) for at in (on[0] - smallest, on[0], off[0] - smallest, off[0])] == [0, 40, 40, 0]


def test_each_action_is_one_moment_after_those_before_it(flags: list[str]) -> None:
    few = flags[:3]
    actions: list[Callable[[], object]] = [
        lambda: switch_flags({"shop": few}, "production", True, caller=WHO),
        lambda: set_stale({"shop": few}, True, caller=WHO),
        lambda: change_tags_of_many({"shop": few}, add=[("simple", "checkout")], remove=[], caller=WHO),
        lambda: dependencies.add_dependency("shop", few[0], {"feature": few[1]}, caller=WHO),
        lambda: revert_flag("shop", few[0], created(few[0]).created_at, caller=WHO),
        lambda: move.move_flag("shop", flags[-1], "docs", caller=WHO),
        lambda: archive.archive_flags("shop", few, caller=WHO),
        lambda: archive.revive_flags("shop", few, caller=WHO),
        lambda: archive.archive_flags("shop", few, caller=WHO),
        lambda: archive.delete_flags("shop", few, caller=WHO),
        lambda: import_body(read_body(body("new-1", "new-2", flags[4])), caller=WHO),
        lambda: undo_import(ImportRun.objects.get().pk, caller=WHO),
        lambda: archive.archive_flags("docs", [flags[-1]], caller=WHO),
        lambda: delete_project("docs", caller=WHO),
    ]
    last = moments(lambda: enable_flag("shop", few[0], "development", caller=WHO))[-1]
    for action in actions:
        times = moments(action)
        assert times
        assert set(times) == {times[0]}
        assert times[0] > last
        last = times[0]


def created(flag: str) -> AuditEvent:
    return AuditEvent.objects.get(feature=flag, type=EventType.FEATURE_CREATED)


@pytest.mark.parametrize("stop", [BEFORE_LOCK, BEFORE_COMMIT])
def test_moments_follow_each_other_as_the_changes_of_a_project_do(flags: list[str], stop: str) -> None:
    """Whoever waits for the lock gets a later moment, even if its transaction began earlier."""
    race(
        lambda: switch_flags({"shop": flags}, "production", True, caller=WHO),
        lambda: switch_flags({"shop": flags}, "production", False, caller=WHO),
        stop=stop,
    )
    events = AuditEvent.objects.filter(type__startswith="feature-environment-").order_by("id")
    on = [event.type == EventType.FEATURE_ENVIRONMENT_ENABLED for event in events]
    times = [event.created_at for event in events]
    assert times == sorted(times)
    assert {on_at(at) for at in set(times)} == {40 if on[-1] else 0, 40 if on[0] else 0}


def test_a_change_under_way_has_the_moment_of_its_first_event(flags: list[str]) -> None:
    """However it records them."""
    with transaction.atomic():
        record(Event(type=EventType.PROJECT_UPDATED, project="shop"), actor=WHO)
        first = read_transaction_time()
        copy_all([Event(type=EventType.PROJECT_UPDATED, project="shop")] * 2, actor=WHO)
        select = "SELECT %s, name, NULL::jsonb, NULL::jsonb FROM projects_flag"
        record_selected(EventType.FEATURE_DELETED, select, ["shop"], actor=WHO)
    recorded = AuditEvent.objects.order_by("-id")[: 3 + Flag.objects.count()]
    assert {event.created_at for event in recorded} == {first}
    with transaction.atomic():
        assert read_transaction_time() > first


def test_a_change_that_is_undone_leaves_its_moment_to_nobody(flags: list[str]) -> None:
    with transaction.atomic():
        record(Event(type=EventType.PROJECT_UPDATED, project="shop"), actor=WHO)
        undone = read_transaction_time()
        transaction.set_rollback(True)
    with transaction.atomic():
        record(Event(type=EventType.PROJECT_UPDATED, project="shop"), actor=WHO)
    assert AuditEvent.objects.latest("id").created_at > undone
