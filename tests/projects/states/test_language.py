"""The laws of the language of states, for generated flags."""

from collections.abc import Callable
from inspect import signature
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from groups.permissions import Permission
from projects.states import (
    DETAIL_MEMBERS,
    NOTHING,
    FlagState,
    Part,
    apply,
    apply_there,
    by_environment,
    changes,
    changes_there,
    describe,
    has_enabled,
    match,
    next_sort_order,
    permissions,
    turn_on,
    with_strategies,
    without,
)
from tests.projects.states.generated import STRATEGY, flags, places
from tests.support.examples import examples

laws = settings(max_examples=examples(400), deadline=None)
# The laws of flags and of environments. Generating takes longer than checking, so all laws of a kind get the same examples.
FLAGS: list[Callable[..., None]] = []
PLACES: list[Callable[..., None]] = []


def of_flags(law: Callable[..., None]) -> Callable[..., None]:
    FLAGS.append(law)
    return law


def of_places(law: Callable[..., None]) -> Callable[..., None]:
    PLACES.append(law)
    return law


@laws
@given(
    st.fixed_dictionaries(
        {"before": flags(), "after": flags(), "now": flags(), "most": st.sampled_from([None, 4])}
    )
)
def test_flags(drawn: dict[str, Any]) -> None:
    check(FLAGS, drawn)


@laws
@given(
    st.fixed_dictionaries(
        {"before": places(), "after": places(), "new": st.lists(STRATEGY, max_size=4), "default": STRATEGY}
    )
)
def test_environments(drawn: dict[str, Any]) -> None:
    check(PLACES, drawn)


def check(every: list[Callable[..., None]], drawn: dict[str, Any]) -> None:
    broken = {}
    for law in every:
        try:
            law(*(drawn[name] for name in signature(law).parameters))
        except AssertionError as error:
            broken[law.__name__] = str(error)
    assert broken == {}


def comparable(flag: FlagState) -> Any:
    """Two flags are the same, whatever the order of their parents, and whether an unset environment is listed."""
    set_places = {name: place for name, place in by_environment(flag).items() if place != NOTHING}
    parents = sorted(flag["dependencies"], key=lambda parent: parent["feature"])
    return {**flag, "dependencies": parents, "environments": set_places}


# Changes -----------------------------------------------------------------------------------------------------------


@of_flags
def applying_the_changes_gives_the_other_flag(before: Any, after: Any, most: int | None) -> None:
    assert comparable(apply(before, changes(before, after, most=most))) == comparable(after)


@of_flags
def equal_flags_have_no_changes_and_need_no_permission(before: Any) -> None:
    assert changes(before, before) == []
    assert permissions([]) == []


@of_places
def one_strategy_more_than_allowed_never_exists_on_the_way(before: Any, after: Any) -> None:
    place = before
    for change in changes_there("production", before, after, most=4):
        place = apply_there(place, [change])
        assert len(place["strategies"]) <= 4


@of_flags
def every_change_says_what_was_there_before(before: Any, after: Any) -> None:
    state = before
    for change in changes(before, after):
        if change.part.member in (*DETAIL_MEMBERS, "archived"):
            assert state[change.part.member] == change.before
        elif change.part.member == "variants":
            assert by_environment(state).get(change.part.environment, NOTHING)["variants"] == change.before
        state = apply(state, [change])


@of_flags
def each_part_is_changed_once(before: Any, after: Any) -> None:
    parts = [change.part for change in changes(before, after)]
    assert len(set(parts)) == len(parts)
    assert all(describe(part) for part in parts)


@of_places
def the_switch_is_a_change_where_it_differs_before_or_on_the_way(before: Any, after: Any) -> None:
    made = changes_there("production", before, after)
    others = [change for change in made if change.action != "updateEnabled"]
    on_the_way = apply_there(before, others)["enabled"]
    assert (not before["enabled"] == on_the_way == after["enabled"]) == (len(others) < len(made))


def test_each_kind_of_change_has_its_permission() -> None:
    strategy: Any = {"id": "a", "name": "default", "title": None, "disabled": False, "sortOrder": 0}
    strategy |= {"parameters": {}, "constraints": [], "segments": [], "variants": []}
    base: Any = {
        "archived": False, "description": None, "type": "release", "owner": None, "stale": False,
        "impressionData": False, "dependencies": [],
        "environments": [{"name": "production", "enabled": True, "variants": [], "strategies": [strategy]}],
    }  # fmt: skip
    [place] = base["environments"]
    second = {**strategy, "id": "b", "sortOrder": 1}
    edits: list[tuple[Any, list[str]]] = [
        ({"stale": True}, ["UPDATE_FEATURE"]),
        ({"archived": True}, ["DELETE_FEATURE"]),
        ({"dependencies": [{"feature": "p"}]}, ["UPDATE_FEATURE_DEPENDENCY"]),
        ({"environments": [{**place, "enabled": False}]}, ["UPDATE_FEATURE_ENVIRONMENT"]),
        ({"environments": [{**place, "variants": [{"name": "x"}]}]}, ["UPDATE_FEATURE_ENVIRONMENT_VARIANTS"]),
        ({"environments": [{**place, "strategies": [strategy, second]}]}, ["CREATE_FEATURE_STRATEGY"]),
        (
            {"environments": [{**place, "strategies": [{**strategy, "title": "A"}]}]},
            ["UPDATE_FEATURE_STRATEGY"],
        ),
        (
            {"environments": [{**place, "strategies": [{**strategy, "sortOrder": 3}]}]},
            ["UPDATE_FEATURE_STRATEGY"],
        ),
        (
            {"environments": [{**place, "enabled": False, "strategies": []}]},
            ["UPDATE_FEATURE_ENVIRONMENT", "DELETE_FEATURE_STRATEGY"],
        ),
    ]
    for edit, needed in edits:
        edited: Any = {**base, **edit}
        assert permissions(changes(base, edited)) == list(map(Permission, needed)), edit
    archived: Any = {**base, "archived": True, "environments": [{**place, "enabled": False}]}
    revived: Any = {**archived, "archived": False}
    assert permissions(changes(archived, revived)) == [Permission.UPDATE_FEATURE]


# Strategies --------------------------------------------------------------------------------------------------------


def drop_ids(strategies: Any) -> Any:
    return [{key: value for key, value in strategy.items() if key != "id"} for strategy in strategies]


@of_places
def matching_changes_nothing_but_ids_which_are_unique(before: Any, new: Any) -> None:
    matched = match(before["strategies"], new)
    assert drop_ids(matched) == new
    assert len({strategy["id"] for strategy in matched}) == len(new)


@of_places
def strategies_that_have_lost_their_ids_get_them_back(before: Any) -> None:
    assert match(before["strategies"], drop_ids(before["strategies"])) == before["strategies"]


@of_places
def strategies_with_ids_keep_them(before: Any, after: Any) -> None:
    assert match(before["strategies"], after["strategies"]) == after["strategies"]


@of_places
def a_strategy_is_added_only_if_none_of_its_type_is_removed(before: Any, new: Any) -> None:
    matched = match(before["strategies"], new)
    kept = {strategy["id"] for strategy in matched}
    removed = {strategy["name"] for strategy in before["strategies"] if strategy["id"] not in kept}
    old_ids = {strategy["id"] for strategy in before["strategies"]}
    assert not any(strategy["name"] in removed for strategy in matched if strategy["id"] not in old_ids)


@of_places
def a_flag_loses_its_last_enabled_strategy_only_together_with_its_switch(before: Any, after: Any) -> None:
    edited = with_strategies(before, after["strategies"])
    assert edited["enabled"] == (before["enabled"] and has_enabled(after["strategies"]))


@of_places
def turning_on_adds_the_default_strategy_only_where_none_is_enabled(before: Any, default: Any) -> None:
    default = {**default, "disabled": False, "sortOrder": next_sort_order(before["strategies"]), "id": "new"}
    on = turn_on(before, default)
    assert on["enabled"]
    assert has_enabled(on["strategies"])
    assert (default in on["strategies"]) == (not has_enabled(before["strategies"]))


# Taking a change back ----------------------------------------------------------------------------------------------


@of_flags
def taking_the_only_change_back_restores_the_flag(before: Any, after: Any) -> None:
    back, conflicts = without(after, after, before)
    assert conflicts == []
    expected = dict(by_environment(before))
    for name, place in by_environment(after).items():
        loses_last = has_enabled(place["strategies"]) and not has_enabled(
            expected.get(name, NOTHING)["strategies"]
        )
        was_on_without = expected.get(name, NOTHING)["enabled"]
        if loses_last and not was_on_without and name in expected:
            expected[name] = {**expected[name], "enabled": False}
    restored: Any = {**before, "environments": [{"name": name, **place} for name, place in expected.items()]}
    assert comparable(back) == comparable(restored)


@of_flags
def taking_back_what_changed_nothing_changes_nothing(now: Any, after: Any) -> None:
    assert comparable(without(now, after, after).state) == comparable(now)


@of_flags
def what_the_change_did_not_touch_stays(before: Any, after: Any, now: Any) -> None:
    back, _ = without(now, after, before)
    for member in (*DETAIL_MEMBERS, "archived"):
        if before[member] == after[member]:
            assert back[member] == now[member]  # type: ignore[literal-required]
    sides = [by_environment(state) for state in (now, after, before, back)]
    for name in {name for side in sides for name in side}:
        here, changed, was, result = (side.get(name, NOTHING) for side in sides)
        if changed["variants"] == was["variants"]:
            assert result["variants"] == here["variants"]
        if changed["strategies"] == was["strategies"]:
            assert result["strategies"] == here["strategies"]


@of_flags
def what_has_been_changed_again_stays_and_is_named(before: Any, after: Any, now: Any) -> None:
    back, conflicts = without(now, after, before)
    for member in (*DETAIL_MEMBERS, "archived"):
        is_changed_again = after[member] != before[member] and now[member] not in (
            after[member],
            before[member],
        )
        assert (Part("", member) in conflicts) == is_changed_again
        if is_changed_again:
            assert back[member] == now[member]  # type: ignore[literal-required]
    parents = {parent["feature"] for parent in now["dependencies"]} - {
        p["feature"] for p in after["dependencies"]
    }
    assert parents - {p["feature"] for p in before["dependencies"]} <= {
        p["feature"] for p in back["dependencies"]
    }


def test_parts_are_said_in_words() -> None:
    said = {
        Part("", "owner"): "owner",
        Part("", "stale"): "whether it is stale",
        Part("", "dependencies", "checkout"): "the dependency on checkout",
        Part("production", "enabled"): "whether it is on in production",
        Part("production", "variants"): "variants in production",
        Part("production", "strategies", "a"): "a strategy in production",
        Part("production", "strategies"): "the strategies in production",
    }
    assert {part: describe(part) for part in said} == said
