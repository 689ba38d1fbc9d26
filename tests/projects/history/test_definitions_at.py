"""The past, read back from the audit events, is what was stored."""

from datetime import datetime, timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from groups.access import Caller
from projects.flags.actions import NewFlag, create_flag, update_flag
from projects.history.definitions_at import read_outside_changes
from projects.models import Flag, Project, VersionsSince
from projects.strategies.actions import add_strategy, update_strategy
from tests.projects.history.checked import at, check_history
from tests.support.cast import make_project

pytestmark = pytest.mark.django_db


def test_the_past_is_what_was(shop: Project) -> None:
    check_history(2, 60)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(3, 9))
def test_every_past_is_what_was(shop: Project, seed: int) -> None:
    check_history(seed, 200)


def test_edits_of_one_strategy_between_those_of_another_are_each_taken_back(shop: Project) -> None:
    caller = Caller.system()
    create_flag("shop", NewFlag(name="f"), caller=caller)
    place = ("shop", "f", "production")
    first, second = (
        add_strategy(*place, {"name": "default", "title": "new"}, caller=caller)["id"] for _ in range(2)
    )
    moments = [(timezone.now(), {first: "new", second: "new"})]
    for number, edited in enumerate([first, first, second, second, first, second, first]):
        update_strategy(*place, edited, {"title": f"edit {number}"}, caller=caller)
        moments.append((timezone.now(), {**moments[-1][1], edited: f"edit {number}"}))

    def read_titles(moment: datetime) -> dict[str, str | None]:
        [flag] = at(moment, "shop", "production").flags
        return {strategy["id"]: strategy["title"] for strategy in flag["strategies"]}

    assert [read_titles(moment) for moment, _ in moments] == [titles for _, titles in moments]


@pytest.mark.django_db(transaction=True)
def test_a_change_that_leaves_no_event_is_noticed() -> None:
    make_project("shop")
    make_project("docs")
    create_flag("shop", NewFlag(name="f"), caller=Caller.system())
    create_flag("docs", NewFlag(name="g"), caller=Caller.system())
    before = timezone.now()
    assert read_outside_changes(["shop", "docs"], before - timedelta(hours=1)) == []
    with connection.cursor() as cursor:
        cursor.execute("UPDATE projects_flag SET impression_data = true WHERE name = 'f'")
        cursor.execute(
            "UPDATE projects_flag SET description = 'said' WHERE name = 'g' AND archived_at IS NOT NULL"
        )
    update_flag("docs", "g", {"impression_data": True}, caller=Caller.system())
    with transaction.atomic():  # several statements are one change
        Flag.objects.filter(name="f").update(stale=True)
        Flag.objects.filter(name="f").update(archived_at=before)
    assert read_outside_changes(["shop", "docs"], before) == []  # versions have it
    VersionsSince.objects.create(since=timezone.now(), kept_since=timezone.now())
    [found] = read_outside_changes(["shop", "docs"], before)
    assert (found.project, found.count) == ("shop", 2)
    assert before < found.first < found.last < timezone.now()
