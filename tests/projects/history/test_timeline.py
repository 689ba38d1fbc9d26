"""The whole history of a flag is read at once."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from groups.access import Caller
from playground.outcomes.history import Sight, read_histories
from projects.flags.actions import NewFlag, create_flag
from projects.flags.dependencies.actions import add_dependency
from projects.history.timeline import read_timeline
from projects.models import Flag, Project
from projects.segments.actions import create_segment
from projects.strategies.actions import add_strategy
from tests.support.moments import set_moment

pytestmark = pytest.mark.django_db
WHO = Caller.system()
EDIT = "UPDATE projects_strategy SET parameters = parameters || jsonb_build_object('rollout', %s::text) WHERE flag_id = %s"


def make_changes(flag: Flag, number: int) -> list[datetime]:
    """Edits the flag's strategy so many times, each a second after the one before."""
    first = timezone.now() + timedelta(hours=1)
    times = [first + timedelta(seconds=second) for second in range(number)]
    with connection.cursor() as cursor:
        for place, moment in enumerate(times):
            set_moment(moment.isoformat())
            cursor.execute(EDIT, [str(place % 100), flag.pk])
    set_moment("")
    return times


def test_five_hundred_changes_are_read_by_one_query(shop: Project, django_assert_num_queries: Any) -> None:
    flag = create_flag("shop", NewFlag(name="cart"), caller=WHO)
    create_flag("shop", NewFlag(name="parent"), caller=WHO)
    add_dependency("shop", "cart", {"feature": "parent"}, caller=WHO)
    segment = create_segment({"name": "beta", "constraints": []}, caller=WHO).pk
    given = {"name": "flexibleRollout", "parameters": {"rollout": "100"}, "segments": [segment]}
    add_strategy("shop", "cart", "production", given, caller=WHO)
    times = make_changes(flag, 500)
    with django_assert_num_queries(1):
        timeline = read_timeline(["cart"])
    assert {*times} <= {*timeline.list_moments()}
    for place, moment in enumerate(times):
        state = timeline.read_state("cart", moment)
        assert state is not None
        [there] = [place for place in state["environments"] if place["name"] == "production"]
        [strategy] = there["strategies"]
        assert (strategy["parameters"]["rollout"], strategy["segments"]) == (str(place % 100), [segment])
        read = timeline.read_definitions(["cart"], "production", moment)
        assert [flag["name"] for flag in read.flags] == ["cart", "parent"]
        assert [*read.segments] == [segment]


def test_assignments_need_no_query_for_each_change(shop: Project, django_assert_num_queries: Any) -> None:
    flag = create_flag("shop", NewFlag(name="cart"), caller=WHO)
    add_strategy("shop", "cart", "production", {"name": "flexibleRollout"}, caller=WHO)
    for number in (3, 30):
        make_changes(flag, number)
        with django_assert_num_queries(5):
            [history] = read_histories(Sight.of(WHO, "production"), "production", ["cart"])
        assert len(history.moments) > number
