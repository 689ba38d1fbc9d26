"""/projects/ID/environments/: how flags differ between two environments."""

import re
from typing import Any

import pytest

from flagadmin.core.audit.record import Event, EventType, record
from groups.access import Caller
from projects.environments.comparison import find_differences, read_configurations
from projects.environments.comparison_queries import ComparedFlag, describe_sides, mark_differences
from projects.flags.lists.strategy_lines import Palette
from projects.models import Environment, ProjectEnvironment, Segment
from projects.strategies.actions import add_strategy
from tests.support.flags import add_strategy as insert_strategy
from tests.support.flags import make_flag, switch_on
from tests.support.for_each import for_each
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db
URL = "/projects/shop/environments/"
PLACES = ("development", "production")
IS_DE = [{"contextName": "country", "operator": "IN", "values": ["DE"]}]
IN_TWO: list[dict[str, Any]] = [{"contextName": "country", "operator": "IN", "values": ["DE", "FR"]}]
IS_OLD = [{"contextName": "age", "operator": "NUM_GT", "value": "65", "values": []}]
HALF: dict[str, Any] = {"parameters": {"rollout": "50", "stickiness": "userId", "groupId": "cart"}}
ALL = {"parameters": {"rollout": "100", "stickiness": "userId", "groupId": "cart"}}
BLUE: list[dict[str, Any]] = [
    {"name": "blue", "weight": 1000, "weightType": "variable", "stickiness": "default"}
]
GREEN = [{**BLUE[0], "name": "green"}]

DIFFERENCES: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
    "nothing": ([{"name": "default"}], [{"name": "default", "sort_order": 7}], ()),
    "a share": ([{"name": "flexibleRollout", **HALF}], [{"name": "flexibleRollout", **ALL}], ("rollout",)),
    "everyone and a share": ([{"name": "default"}], [{"name": "flexibleRollout", **HALF}], ("rollout",)),
    "users": ([{"name": "default"}], [{"name": "userWithId", "parameters": {"userIds": "7"}}], ("strategy",)),
    "a condition": ([{"constraints": IS_DE}], [{}], ("condition",)),
    "variants": ([{"variants": BLUE}], [{"variants": GREEN}], ("variants",)),
    "a strategy more": ([{}, {"constraints": IS_DE}], [{}], ("strategy",)),
    "a disabled one": ([{}], [{"disabled": True}], ("strategy",)),
    "a title": ([{"title": "Beta"}], [{}], ("strategy",)),
    "their order": ([{"title": "A"}, {"title": "B"}], [{"title": "B"}, {"title": "A"}], ("strategy",)),
    "none": ([], [{}], ("strategy",)),
    "the order of values": (
        [{"constraints": IN_TWO}],
        [{"constraints": [{**IN_TWO[0], "values": ["FR", "DE"]}]}],
        (),
    ),
    "the order of conditions": ([{"constraints": IS_DE + IS_OLD}], [{"constraints": IS_OLD + IS_DE}], ()),
    "a default that is written": (
        [{"constraints": IS_DE}],
        [{"constraints": [{**IS_DE[0], "inverted": False}]}],
        (),
    ),
}


@for_each("name", DIFFERENCES)
def test_differences(shop: Any, name: str) -> None:
    source, target, kinds = DIFFERENCES[name]
    flag = make_flag("cart", strategies=source)
    for order, strategy in enumerate(target):
        insert_strategy(flag, "production", **{"sort_order": order} | strategy)
    [pair] = read_configurations([flag.pk], PLACES).values()
    assert find_differences(pair) == kinds


def test_switch_segments_and_variants_of_the_environment_differ(shop: Any) -> None:
    segment = Segment.objects.create(name="vip")
    flag = make_flag("cart", variants=BLUE, enabled=True, strategies=[{"segments": [segment]}])
    insert_strategy(flag, "production")
    [pair] = read_configurations([flag.pk], PLACES).values()
    assert find_differences(pair) == ("switch", "condition", "variants")


def test_a_flag_without_a_row_in_an_environment_is_off_there(shop: Any) -> None:
    flag = make_flag("cart")
    flag.environments.all().delete()
    [pair] = read_configurations([flag.pk], PLACES).values()
    assert find_differences(pair) == ()


@for_each("count", [1, 30])
def test_the_number_of_queries_does_not_depend_on_flags(
    shop: Any, count: int, django_assert_num_queries: Any
) -> None:
    flags = [make_flag(f"flag-{n}", strategies=[{}]) for n in range(count)]
    with django_assert_num_queries(3):
        read_configurations([flag.pk for flag in flags], PLACES)


@for_each(
    ("one", "other", "marked"),
    [
        ("On for 10 % by userId.", "On for 50 % by userId.", "On for [10] % by userId."),
        ("where a is one of US, DE, NO.", "where a is one of US, DE.", "where a is one of US, DE[, NO]."),
        ("above 5.0.0.", "above 5.1.0.", "above [5.0.0]."),
        ("", "On for everyone.", ""),
        ("On for everyone.", "", "[On for everyone.]"),
        ("a  b", "a  c", "a  [b]"),
        ("is one of a,b c..", "is one of a,d c..", "is one of [a,b] c.."),
    ],
)
def test_words_that_differ_are_marked(one: str, other: str, marked: str) -> None:
    pieces, others = mark_differences(one, other)
    assert "".join(f"[{piece.text}]" if piece.differs else piece.text for piece in pieces) == marked
    assert "".join(piece.text for piece in others) == other


HIDDEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "payload": ({"payload": {"type": "string", "value": "a"}}, {"payload": {"type": "string", "value": "b"}}),
    "payload json": (
        {"payload": {"type": "string", "value": "1"}},
        {"payload": {"type": "json", "value": "1"}},
    ),
    "type": ({"weightType": "fix"}, {"weightType": "variable"}),
    "stickiness": ({"stickiness": "userId"}, {"stickiness": "default"}),
    "overrides": ({"overrides": [{"contextName": "userId", "values": ["7"]}]}, {}),
}


def test_sentences_of_what_differs_are_never_the_same(shop: Any) -> None:
    many = [str(number) for number in range(40)]
    pairs = [({**BLUE[0], **one}, {**BLUE[0], **other}) for one, other in HIDDEN.values()]
    strategies: list[tuple[Any, Any]] = [({"variants": [one]}, {"variants": [other]}) for one, other in pairs]
    strategies += [
        ({"parameters": {**HALF["parameters"], "groupId": group}}, HALF) for group in ("checkout", "other")
    ]
    strategies += [
        (
            {"constraints": [{**IN_TWO[0], "values": many}]},
            {"constraints": [{**IN_TWO[0], "values": [*many[:-1], "x"]}]},
        )
    ]
    same: list[Any] = []
    for one, other in strategies:
        name = f"flag-{len(same)}-{strategies.index((one, other))}"
        flag = make_flag(name, strategies=[{"name": "flexibleRollout", **one}])
        insert_strategy(flag, "production", "flexibleRollout", **other)
        [pair] = read_configurations([flag.pk], PLACES).values()
        assert find_differences(pair), one
        row = ComparedFlag(flag.pk, name, None, pair, ())
        shown = [
            repr([(line.pieces, line.variants) for line in cell.lines])
            for cell in row.cells(PLACES, {}, Palette())
        ]
        if shown[0] == shown[1]:
            same.append((one, shown[0]))
    for one, other in pairs:
        flag = make_flag(f"own-{pairs.index((one, other))}", variants=[one])
        flag.environments.filter(environment="production").update(variants=[other])
        [pair] = read_configurations([flag.pk], PLACES).values()
        if len(set(describe_sides(pair, {}))) == 1:
            same.append(describe_sides(pair, {}))
    assert same == []


# The page ---------------------------------------------------------------------------------------------------


@pytest.fixture
def flags(shop: Any) -> None:
    cart = make_flag("cart", strategies=[{"name": "flexibleRollout", **HALF}], description="The cart.")
    insert_strategy(cart, "production", "flexibleRollout", **ALL)
    make_flag("same")
    switch_on(make_flag("live"), "production")
    make_flag("old", archived=True, strategies=[{}])


def names(page: Any) -> list[str]:
    return re.findall(r'<a href="/projects/shop/features/([\w-]+)/">', page.content.decode())


def test_lists_what_differs_for_who_may_change_it(flags: Any, browse: Any) -> None:
    page = browse("viewer").get(URL)
    assert names(page) == ["cart", "live"]
    text = page_text(page)
    assert "2 of 3 flags" in text
    assert "<mark" in page.content.decode()
    assert "Rollout" in text

    lines = b"".join(browse("viewer").get(f"{URL}?format=csv").streaming_content).decode().splitlines()
    assert lines[1].startswith('cart,"Off. On for 50 % of users, by userId.",')
    assert lines[1].endswith(",Rollout")

    assert 'name="name"' not in browse("viewer").get(URL).content.decode()
    assert 'name="name"' in browse("member").get(URL).content.decode()

    ProjectEnvironment.objects.exclude(environment="production").delete()
    assert "uses one environment" in page_text(browse("viewer").get(URL))


@for_each(
    ("query", "listed"),
    [
        ("show=all", ["cart", "live", "same"]),
        ("show=same", ["same"]),
        ("in=rollout", ["cart"]),
        ("in=switch", ["live"]),
        ("q=CART", ["cart"]),
        ("from=production&to=development&in=switch", ["live"]),
        ("from=production&to=production", []),
    ],
)
def test_filters(flags: Any, browse: Any, query: str, listed: list[str]) -> None:
    assert names(browse("viewer").get(f"{URL}?{query}")) == listed


@for_each("query", ["from=moon", "to=moon", "show=none", "in=tags"])
def test_unknown_values_are_refused(flags: Any, browse: Any, query: str) -> None:
    assert browse("viewer").get(f"{URL}?{query}").status_code == 400


def test_says_which_environment_was_changed_last(flags: Any, browse: Any) -> None:
    assert "changed" not in page_text(browse("viewer").get(URL))
    changed = EventType.FEATURE_STRATEGY_UPDATE
    record(
        Event(type=changed, project="shop", environment="development", feature="cart"), actor=Caller.system()
    )
    assert "development changed just now" in page_text(browse("viewer").get(URL))
    add_strategy("shop", "cart", "production", {"name": "default"}, caller=Caller.system())
    assert "production changed later, just now" in page_text(browse("viewer").get(URL))


def test_a_project_without_differences(shop: Any, browse: Any) -> None:
    assert "No flags yet." in page_text(browse("viewer").get(URL))
    make_flag("same")
    assert "Both environments are the same." in page_text(browse("viewer").get(URL))


def test_compares_into_production_from_the_first_other_one(flags: Any, browse: Any) -> None:
    Environment.objects.create(name="acceptance", type="test", sort_order=0)
    ProjectEnvironment.objects.create(project_id="shop", environment_id="acceptance")
    page = browse("viewer").get(URL).content.decode()
    assert page.index("<option selected>acceptance") < page.index("<option selected>production")
