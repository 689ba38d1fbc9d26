"""A snapshot that reuses parts of an earlier one gives the same results as one compiled from scratch."""

import gc
import random
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep
from typing import Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flagadmin.core.document import Document
from playground.engine import active
from playground.engine.active import Found
from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.response import frontend
from playground.response.frontend import render_toggles
from playground.response.snapshot import ResponseSnapshot, compile_playground
from playground.response.writer import render_features
from sdk.evaluation.prepared import Chance
from tests.support.definitions import NORWAY, flag, rollout, strategy
from tests.support.engine import NOW, total_size
from tests.support.examples import examples
from tests.support.generators import contexts, states

PROJECTS = ("p0", "p1", "p2")


def placed(state: Document, shift: int) -> tuple[list[Document], dict[int, Document]]:
    """The flags of a state, each in a project of its own name, and its segments with other ids."""
    flags = [
        feature
        | {
            "project": PROJECTS[crc32(feature["name"].encode("utf-8", "replace")) % 3],
            "strategies": [
                strategy | {"segments": [shift + segment for segment in strategy.get("segments") or []]}
                for strategy in feature.get("strategies") or []
            ],
        }
        for feature in state["features"]
    ]
    return flags, {shift + segment["id"]: segment for segment in state.get("segments") or []}


def switched(flag: Document) -> Document:
    """The flag with the same strategies."""
    return flag | {"enabled": not flag.get("enabled")}


def rearranged(flag: Document) -> Document:
    """The flag without its first strategy, and with the others in another order."""
    return flag | {"strategies": flag["strategies"][:0:-1]}


def repercented(flag: Document) -> Document:
    """The flag with other percentages, of which some are none that SDKs can read."""
    values = iter(["30", "101", "100", "0", 70, None, "x", "", "030"] * 9)
    strategies: list[Document] = []
    for document in flag["strategies"]:
        changed = dict.fromkeys(("rollout", "percentage") & (document.get("parameters") or {}).keys())
        strategies.append(
            document
            | {"parameters": (document.get("parameters") or {}) | {key: next(values) for key in changed}}
        )
    return flag | {"strategies": strategies}


def rendered(
    snapshot: ResponseSnapshot, context: Document, found: dict[str, Found[bytes]] | None = None
) -> tuple[bytes, bytes]:
    """The answers of the playground and of the frontend API, which takes over what was ``found`` before."""
    chance, drawn = random.Random(0).random, Chance()
    evaluation = evaluate(snapshot.snapshot, Context(context), now=NOW, random=chance)
    key = repr(context)
    before = {} if found is None else found
    toggles = snapshot.toggles.flags.find(Context(context).at(NOW), drawn, before.pop(key, None))
    if not drawn.was_used:
        before[key] = toggles
    return render_features(snapshot, evaluation), render_toggles(toggles.active) if key in before else b""


@pytest.fixture(autouse=True, params=[active.MOSTLY, 0.0])
def take_over(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of few flags, too, what is prepared for frontends is taken over."""
    monkeypatch.setattr(active, "MOSTLY", request.param)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    versions=st.tuples(states(), states(), states()),
    changes=st.lists(st.tuples(st.integers(0, 11), st.sets(st.sampled_from(PROJECTS))), max_size=5),
    requests=st.lists(contexts(), min_size=1, max_size=3),
)
def test_whatever_changes(
    versions: tuple[Document, ...], changes: list[tuple[int, set[str]]], requests: list[Document]
) -> None:
    kept = [placed(state, 1000 * number) for number, state in enumerate(versions)]
    kept += [
        ([change(flag) for flag in flags], found)
        for flags, found in kept
        for change in (switched, rearranged, repercented)
    ]
    segments = {key: segment for _, found in kept for key, segment in found.items()}
    now = dict.fromkeys(PROJECTS, 0)  # which version each project is of
    snapshot = compile_playground(kept[0][0], segments, environment="production")
    known: dict[str, Found[bytes]] = {}

    for version, changed in changes:
        now |= dict.fromkeys(changed, version)
        flags = [
            flag for number, (found, _) in enumerate(kept) for flag in found if now[flag["project"]] == number
        ]
        told = [flag for flag in flags if flag["project"] in changed]
        snapshot = compile_playground(
            told, segments, environment="production", earlier=snapshot, unchanged=set(PROJECTS) - changed
        )
        fresh = compile_playground(flags, segments, environment="production")
        for context in requests:
            assert rendered(snapshot, context, known) == rendered(fresh, context)


def test_what_is_as_it_was_is_not_compiled_again() -> None:
    flags = [flag(rollout(str(n), NORWAY), name=f"f{n}") | {"project": f"p{n % 2}"} for n in range(6)]
    before = compile_playground(flags, {}, environment="production")
    switched = flags[0] | {"enabled": False}
    changed = [switched, *(flag for flag in flags[1:] if flag["project"] == "p0")]

    after = compile_playground(changed, {}, environment="production", earlier=before, unchanged={"p1"})

    same = [old is new for old, new in zip(before.snapshot.flags, after.snapshot.flags, strict=True)]
    assert same == [False, True, True, True, True, True]
    assert (before.snapshot.flags[0].enabled, after.snapshot.flags[0].enabled) == (True, False)


def test_strategies_of_a_replaced_flag_that_are_as_they_were_are_taken_over() -> None:
    segments = {1: {"id": 1, "name": "north", "constraints": [NORWAY]}}
    strategies = [
        rollout("10") | {"id": "a"},
        rollout("20", NORWAY) | {"id": "b", "variants": [{"name": "red", "weight": 1}]},
        strategy() | {"id": "c", "segments": [1]},
    ]
    flags = [flag(*strategies, name=f"f{n}") | {"project": f"p{n % 2}"} for n in range(4)]
    before = compile_playground(flags, segments, environment="production")
    changed = flags[0] | {"strategies": [strategies[2], strategies[1], rollout("11") | {"id": "a"}]}
    other = {1: segments[1] | {"constraints": []}}

    def after(document: Document, segments: Document) -> ResponseSnapshot:
        return compile_playground(
            [document],
            segments,
            environment="production",
            earlier=before,
            unchanged=PROJECTS,
            replaced={"f0", "f2"},  # of which f2 is gone
        )

    old, new = before.snapshot.flags[0].strategies, after(changed, segments).snapshot.flags[0].strategies
    assert [each in old and any(each is one for one in old) for each in new] == [True, True, False]
    moved = after(changed | {"project": "p1"}, segments)
    for snapshot, document in ((after(changed, segments), changed), (moved, changed | {"project": "p1"})):
        assert [each.name for each in snapshot.snapshot.flags] == ["f0", "f1", "f3"]
        fresh = compile_playground([document, flags[1], flags[3]], segments, environment="production")
        for country in ("NO", "SE"):
            context = {"userId": "1", "properties": {"country": country}}
            assert rendered(snapshot, context) == rendered(fresh, context)
    third = after(changed, other).snapshot.flags[0].strategies[0]
    assert third not in old or third is not old[2]  # its segment is another one


def test_the_size_does_not_grow_with_the_changes() -> None:
    segments = {1: {"id": 1, "name": "north", "constraints": [NORWAY]}}
    flags = [flag(strategy() | {"segments": [1]}, name=f"f{n}") | {"project": f"p{n % 2}"} for n in range(20)]
    fresh = snapshot = compile_playground(flags, segments, environment="production")
    for _ in range(50):
        changed = [flag for flag in flags if flag["project"] == "p0"]
        snapshot = compile_playground(
            changed, segments, environment="production", earlier=snapshot, unchanged={"p1"}
        )
    assert 0.9 * total_size(fresh) < total_size(snapshot) < 1.1 * total_size(fresh)


def test_conditions_are_shared_anew_after_many_changes() -> None:
    flags = [
        flag(rollout("50", NORWAY | {"values": [f"NO{n}"]}), name=f"f{n:02}") | {"project": "p0"}
        for n in range(20)
    ]
    snapshot = compile_playground(flags, {}, environment="production")
    most = 0
    for number in range(300):
        changed = flag(rollout("50", NORWAY | {"values": [f"SE{number}"]}), name="f03") | {"project": "p0"}
        flags = [*flags[:3], changed, *flags[4:]]
        rendered(snapshot, {"userId": "1"})
        snapshot = compile_playground(flags, {}, environment="production", earlier=snapshot)
        most = max(most, snapshot.toggles.flags._added)
    assert 50 < most < 60


def test_a_flag_with_a_segment_follows_it() -> None:
    document = flag(strategy() | {"segments": [1]}) | {"project": "p0"}
    before = compile_playground(
        [document], {1: {"id": 1, "name": "north", "constraints": [NORWAY]}}, environment="e"
    )
    open_to_all = {1: {"id": 1, "name": "all", "constraints": []}}

    after = compile_playground([document], open_to_all, environment="e", earlier=before, unchanged=set())

    assert [
        evaluate(s.snapshot, Context({}), now=NOW, random=random.random).outcomes[0][1]
        for s in (before, after)
    ] == [
        False,
        True,
    ]


def test_those_who_ask_first_at_the_same_time_wait_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change, many do."""
    snapshot = compile_playground([flag(name="f01") | {"project": "p0"}], {}, environment="production")
    made, all_ask = list[active.ActiveFlags[bytes]](), Barrier(4)

    class Slow(active.ActiveFlags[bytes]):
        def __init__(self, *arguments: Any) -> None:
            made.append(self)
            sleep(0.05)
            super().__init__(*arguments)

    def ask(_: int) -> active.ActiveFlags[bytes]:
        all_ask.wait(10)
        return snapshot.toggles.flags

    monkeypatch.setattr(frontend, "ActiveFlags", Slow)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert made == found[:1]
    assert len(set(map(id, found))) == 1


def test_toggles_that_nobody_asks_for_keep_no_earlier_snapshot() -> None:
    flags = [flag(name=f"f{number}") | {"project": "p0"} for number in range(20)]
    first = compile_playground(flags, {}, environment="production")
    first.lay_out()
    rendered(first, {})
    left = weakref.ref(first.snapshot)
    second = compile_playground(
        [*flags[:-1], flag(rollout("50"), name="f19") | {"project": "p0"}],
        {},
        environment="production",
        earlier=first,
    )
    del first
    gc.collect()
    assert left() is None
    rendered(second, {})


def test_what_was_found_keeps_no_earlier_snapshot() -> None:
    snapshot = compile_playground([flag(name="f01")], {}, environment="production")
    found = snapshot.toggles.flags.find(Context({}).at(NOW), Chance())
    with_found = sys.getrefcount(snapshot.toggles.flags._prepared)
    del found
    without = sys.getrefcount(snapshot.toggles.flags._prepared)
    assert with_found == without
