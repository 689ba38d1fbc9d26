"""The past, read back from the audit events, is what was stored."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from groups.access import Caller
from projects.definitions import Definitions, definitions
from projects.flags.actions import NewFlag, create_flag, update_flag
from projects.history.past import changed_outside, changed_since
from projects.models import Flag, OutsideChange, Project
from tests.support.cast import make_project
from tests.support.random_changes import PROJECTS, RandomChanges

pytestmark = pytest.mark.django_db
ENVIRONMENTS = ["development", "production", "extra"]


def as_one(found: Definitions) -> dict[str, Any]:
    return {"flags": found.flags, "segments": dict(sorted(found.segments.items()))}


def at(moment: datetime, project: str, environment: str) -> Definitions:
    return changed_since([project], environment, moment).applied(definitions([project], environment))


def stored() -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (project, environment): as_one(definitions([project], environment))
        for project in PROJECTS
        for environment in ENVIRONMENTS
    }


def check_history(seed: int, steps: int) -> RandomChanges:
    """Makes random changes, and compares the past with what was stored each time, and both with none."""
    make_project("docs")
    changes = RandomChanges(seed)
    then: list[tuple[str, datetime, Any]] = [("nothing", timezone.now(), stored())]
    for _ in range(steps):
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('flagadmin.audited', '', true)")
        done = changes.step()
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
        assert not OutsideChange.objects.exists(), f"{done} left no event"
        if done:
            then.append((done, timezone.now(), stored()))
    for done, moment, expected in then:
        for (project, environment), was in expected.items():
            assert as_one(at(moment, project, environment)) == was, (done, project, environment)
    return changes


def test_the_past_is_what_was(shop: Project) -> None:
    check_history(2, 60)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(3, 9))
def test_every_past_is_what_was(shop: Project, seed: int) -> None:
    check_history(seed, 200)


@pytest.mark.django_db(transaction=True)
def test_a_change_that_leaves_no_event_is_noticed() -> None:
    make_project("shop")
    make_project("docs")
    create_flag("shop", NewFlag(name="f"), caller=Caller.system())
    create_flag("docs", NewFlag(name="g"), caller=Caller.system())
    before = timezone.now()
    assert changed_outside(["shop", "docs"], before - timedelta(hours=1)) == []
    with connection.cursor() as cursor:
        cursor.execute("UPDATE projects_flag SET impression_data = true WHERE name = 'f'")
        cursor.execute(
            "UPDATE projects_flag SET description = 'said' WHERE name = 'g' AND archived_at IS NOT NULL"
        )
    update_flag("docs", "g", {"impression_data": True}, caller=Caller.system())
    with transaction.atomic():  # several statements are one change
        Flag.objects.filter(name="f").update(stale=True)
        Flag.objects.filter(name="f").update(archived_at=before)
    [found] = changed_outside(["shop", "docs"], before)
    assert (found.project, found.count) == ("shop", 2)
    assert before < found.first < found.last < timezone.now()
