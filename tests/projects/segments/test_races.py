"""Of a strategy that starts to use a segment and a concurrent move or deletion of it, one is refused."""

import itertools

import pytest

from groups.access import Caller
from importer.apply.execute import import_body
from importer.body.schemas import read_body
from projects.flags.copies.move import move_flag
from projects.models import Environment, ProjectEnvironment, Segment, StrategySegment
from projects.projects.environments import set_default_strategy
from tests.support.cast import client, make_project, make_token, make_user
from tests.support.flags import add_strategy, make_flag
from tests.support.racing import BEFORE_COMMIT, BEFORE_LOCK, race

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.exhaustive]

STRATEGIES = "/api/admin/projects/shop/features/cart/environments/development/strategies"


@pytest.fixture
def segment():
    make_project("shop")
    make_project("other")
    make_flag("cart")
    return Segment.objects.create(name="vip")


@pytest.fixture
def ask(segment):
    """The two requests by name, each answering its status."""
    secret = make_token("personal", user=make_user("admin", root_role=1))
    body = {"name": "vip", "constraints": [], "project": "other"}
    strategy = {"name": "default", "segments": [segment.pk]}

    def put():
        path = f"/api/admin/segments/{segment.pk}"
        return client(secret).put(path, body, format="json").status_code

    def post():
        return client(secret).post(STRATEGIES, strategy, format="json").status_code

    return {"move": put, "use": post}


def is_sound(segment):
    """No strategy of another project has it."""
    segment.refresh_from_db()
    used_in = set(StrategySegment.objects.values_list("strategy__flag__project_id", flat=True))
    return segment.project_id is None or used_in <= {segment.project_id}


@pytest.mark.parametrize(
    ("first", "second", "answers", "uses"), [("use", "move", (200, 400), 1), ("move", "use", (204, 400), 0)]
)
def test_the_first_one_counts(ask, segment, first, second, answers, uses):
    assert race(ask[first], ask[second], stop=BEFORE_COMMIT) == answers
    assert segment.strategies.count() == uses
    assert is_sound(segment)


def imports(segment):
    strategy = {"name": "default", "featureName": "menu", "segments": [1]}
    data = {
        "features": [{"name": "menu"}],
        "featureStrategies": [strategy],
        "segments": [{"id": 1, "name": segment.name}],
        "tagTypes": [],
    }
    body = read_body({"project": "shop", "environment": "development", "data": data})
    return lambda: import_body(body, caller=Caller.system()).state


def test_an_import_comes_first(ask, segment):
    assert race(imports(segment), ask["move"], stop=BEFORE_COMMIT) == ("done", 400)
    assert is_sound(segment)


def test_a_flag_leaves_the_project_that_the_segment_moves_to(ask, segment):
    flag = make_flag("menu", "other")
    StrategySegment.objects.create(strategy=add_strategy(flag), segment=segment)

    def leave():
        return move_flag("other", "menu", "shop", caller=Caller.system()).project_id

    assert race(leave, ask["move"], stop=BEFORE_COMMIT) == ("shop", 400)
    assert is_sound(segment)


def test_a_default_strategy_comes_first(ask, segment):
    strategy = {"name": "default", "segments": [segment.pk]}

    def set_default():
        stored = set_default_strategy("shop", "development", strategy, caller=Caller.system())
        return stored["segments"] if stored else None

    assert race(set_default, ask["move"], stop=BEFORE_COMMIT) == ([segment.pk], 400)
    assert is_sound(segment)


DEFAULT_STRATEGIES = {
    "set": (
        "/api/admin/projects/shop/environments/development/default-strategy",
        lambda strategy: strategy,
        200,
    ),
    "new environment": (
        "/api/admin/projects/shop/environments",
        lambda strategy: {"environment": "staging", "defaultStrategy": strategy},
        200,
    ),
}


@pytest.mark.parametrize("how", DEFAULT_STRATEGIES)
@pytest.mark.parametrize(
    ("use_starts", "stop"), list(itertools.product([True, False], [BEFORE_LOCK, BEFORE_COMMIT]))
)
def test_a_segment_is_deleted_while_a_default_strategy_takes_it(segment, how, use_starts, stop):
    """No foreign key would notice: default strategies name segments in JSON."""
    Environment.objects.create(name="staging", type="test")
    secret = make_token("personal", user=make_user("admin", root_role=1))
    path, body, taken = DEFAULT_STRATEGIES[how]
    strategy = {"name": "default", "segments": [segment.pk]}
    calls = [
        lambda: client(secret).post(path, body(strategy), format="json"),
        lambda: client(secret).delete(f"/api/admin/segments/{segment.pk}"),
    ]
    answers = race(*(calls if use_starts else calls[::-1]), stop=stop)
    used, deleted = answers if use_starts else answers[::-1]
    told = (used.status_code, deleted.status_code)
    assert told in {(taken, 409), (400, 204)}, (told, used.content, deleted.content)
    uses = ProjectEnvironment.objects.filter(default_strategy__segments__contains=[segment.pk])
    assert Segment.objects.filter(pk=segment.pk).exists() == uses.exists() == (told == (taken, 409))
