"""What the one writer of flags' states in environments writes is read back, for few flags and for many."""

from collections.abc import Sequence
from random import Random
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from projects.definitions import read_definitions
from projects.models import Flag, Segment, Strategy
from projects.models.strategies import make_time_ordered_id
from projects.states import NOTHING, in_order
from projects.strategies.rules import StrategyDefaults, make_strategy
from projects.strategies.write import MANY, StateChange, write_states
from tests.support.examples import examples
from tests.support.for_each import for_each
from tests.support.playground import live_flag
from tests.support.random_changes import RandomChanges

PLACE = "production"


def read(flags: Sequence[Flag]) -> dict[str, Any]:
    read = read_definitions(["shop"], PLACE, flags=[flag.name for flag in flags])
    return {
        flag["name"]: {key: flag[key] for key in ("enabled", "variants", "strategies")} for flag in read.flags
    }


def make_state(random: RandomChanges, before: Any) -> Any:
    """Keeps, edits, removes and adds strategies."""
    choice: Random = random.random
    kept = [each for each in before["strategies"] if choice.random() < 0.7]
    edited: list[Any] = [
        each if choice.random() < 0.5 else {**make(random), "id": each["id"]} for each in kept
    ]
    added = [{**make(random), "id": str(make_time_ordered_id())} for _ in range(choice.randrange(3))]
    variants = choice.choice([before["variants"], [], [{"name": "blue", "weight": 1000}]])
    return {
        "enabled": choice.random() < 0.5,
        "variants": variants,
        "strategies": in_order(edited + added),
    }


def make(random: RandomChanges) -> Any:
    strategy = make_strategy(random.strategy(), StrategyDefaults("f"))
    return strategy | {"sortOrder": random.random.randrange(4)}


@for_each(("number", "seed"), [(1, 1), (2, 2), (MANY + 10, 3)])
def test_what_is_written_is_read(shop: Any, number: int, seed: int) -> None:
    for name in ("everybody", "vip"):
        Segment.objects.create(name=name, constraints=[])
    flags = [live_flag(f"flag-{index:02}", enabled=False, strategies=[]) for index in range(number)]
    random, created = RandomChanges(seed), dict[Any, Any]()
    for _ in range(examples(40) // min(number, 4)):
        before = read(flags)
        after = {name: make_state(random, state) for name, state in before.items()}
        changes = [StateChange(flag.pk, PLACE, before[flag.name], after[flag.name]) for flag in flags]
        with CaptureQueriesContext(connection) as queries:
            write_states(changes)
        assert len(queries) <= 6
        assert read(flags) == after
        times = dict(Strategy.objects.values_list("pk", "created_at"))
        assert all(times[key] == at for key, at in created.items() if key in times)
        created = times


def test_nothing_is_written_without_a_difference(shop: Any) -> None:
    flag = live_flag("f", enabled=False, strategies=[])
    state = make_state(RandomChanges(0), {"enabled": False, "variants": [], "strategies": []})
    write_states([StateChange(flag.pk, PLACE, NOTHING, state)])
    with CaptureQueriesContext(connection) as queries:
        write_states([StateChange(flag.pk, PLACE, state, state)])
    assert len(queries) == 0
