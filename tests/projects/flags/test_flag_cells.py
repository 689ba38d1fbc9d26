"""The cells of a list of flags, and its filters and sorting."""

from datetime import timedelta

import pytest
from django.http import QueryDict
from django.utils import timezone

from flagadmin.core.lists.pages import Listing
from projects.flags.lists.cells import read_flag_cells
from projects.flags.lists.queries import (
    annotate_for_sort,
    filter_flags,
    list_columns,
    list_filters,
    make_project_scope,
)
from projects.models import Flag, FlagLastSeen, FlagTag, Project, Segment, Strategy, TagType
from tests.support.flags import add_strategy, depend, make_flag, switch_on
from tests.support.for_each import for_each

pytestmark = pytest.mark.django_db
PLACES = ["development", "production"]
RULE = [{"contextName": "plan", "operator": "IN", "values": ["pro"]}]


def rollout(share: object) -> dict[str, object]:
    return {"name": "flexibleRollout", "parameters": {"rollout": share, "stickiness": "default"}}


def cell_of(flag: Flag, environment: str = "development"):
    (row,) = read_flag_cells([flag])
    return next(cell for cell in row.cells if cell.environment == environment)


@for_each(
    ("strategies", "share", "text", "conditional"),
    [
        ([], 100, "100 %", False),
        ([{"name": "default"}], 100, "100 %", False),
        ([rollout("10")], 10, "10 %", False),
        ([rollout("0")], 0, "0 %", False),
        ([rollout("+7")], 7, "7 %", False),
        ([rollout("33.3")], 0, "0 %", False),
        ([rollout("many")], 0, "0 %", False),
        ([rollout("101")], 0, "0 %", False),
        ([{"name": "gradualRolloutUserId", "parameters": {"percentage": "25"}}], 25, "25 %", False),
        ([{"name": "flexibleRollout", "parameters": {}}], 0, "0 %", False),
        ([rollout("50") | {"constraints": RULE}], 17.6, "17.6 %", True),
        ([{"name": "userWithId", "parameters": {"userIds": "1"}}], None, "Targeted list", True),
        ([{"name": "ours"}], None, "Targeted list", True),
        ([rollout("10"), rollout("20"), {"name": "default"}], 100, "100 %", False),
        ([rollout("10"), {"name": "default", "constraints": RULE}], 40, "40 %", True),
        ([{"name": "default", "constraints": RULE}, {"name": "ours"}], None, "33 to 100 %", True),
        ([rollout("10"), {"name": "default", "constraints": RULE, "disabled": True}], 10, "10 %", False),
        ([{"name": "default", "disabled": True}], 0, "0 %", False),
    ],
)
def test_a_cell_says_for_whom_the_flag_is_on(shop: Project, strategies, share, text, conditional) -> None:
    cell = cell_of(make_flag("cart", enabled=True, strategies=strategies))
    measured = None if cell.share is None else round(cell.share, 1)
    assert (cell.enabled, measured, cell.text, cell.conditional) == (True, share, text, conditional)


def test_a_cell_explains_a_share_of_people_that_is_not_the_set_one(shop: Project) -> None:
    flag = make_flag("cart", enabled=True, strategies=[rollout("100") | {"constraints": RULE}])
    cell = cell_of(flag)
    assert (cell.text, cell.set_text) == ("33.3 %", "100 % with conditions")
    assert cell.why == "100 % of those who meet its conditions"
    [unmeasured] = [each for each in read_flag_cells([flag], measured=False)[0].cells if each.enabled]
    assert (unmeasured.text, unmeasured.share) == ("100 % with conditions", 100)


def test_a_flag_is_on_for_as_many_as_its_parent_until_one_of_them_changes(shop: Project) -> None:
    flag, parent = (
        make_flag("cart", enabled=True),
        make_flag("parent", enabled=True, strategies=[rollout("10")]),
    )
    depend(flag, parent)
    assert (cell_of(flag).text, cell_of(flag).why) == ("10 %", "needs parent")
    Strategy.objects.filter(flag=parent).update(parameters={"rollout": "100", "stickiness": "default"})
    assert (cell_of(flag).text, cell_of(flag).why) == ("100 %", "")


def test_shares_are_remembered_until_the_project_changes(shop: Project, django_assert_num_queries) -> None:
    flags = [
        make_flag(f"f{n}", enabled=True, strategies=[rollout("50") | {"constraints": RULE}]) for n in range(3)
    ]
    read_flag_cells(flags)
    with django_assert_num_queries(6):
        read_flag_cells(flags)


def test_a_flag_that_is_off_is_off_whatever_its_strategies(shop: Project) -> None:
    flag = make_flag("cart", strategies=[rollout("50") | {"constraints": RULE}])
    cell = cell_of(flag)
    assert (cell.enabled, cell.share, cell.text, cell.conditional) == (False, 0, "Off", False)
    assert (cell.production, cell_of(flag, "production").production) == (False, True)


def test_a_segment_is_a_condition(shop: Project) -> None:
    segment = Segment.objects.create(name="beta", constraints=[])
    flag = make_flag("cart", enabled=True, strategies=[rollout("50") | {"segments": [segment]}])
    assert cell_of(flag).conditional


def test_parents_and_last_evaluations(shop: Project) -> None:
    flag, parent = make_flag("cart"), make_flag("parent")
    depend(flag, parent)
    now = timezone.now()
    FlagLastSeen.objects.create(flag=flag, environment="development", seen_at=now)
    FlagLastSeen.objects.create(flag=flag, environment="production", seen_at=now - timedelta(days=1))
    row, other = read_flag_cells([flag, parent])
    assert [cell.last_evaluated for cell in row.cells] == [now, now - timedelta(days=1)]
    assert (row.parents, row.last_evaluated) == (["parent"], now)
    assert (other.parents, other.last_evaluated) == ([], None)


def test_cells_need_the_same_queries_for_any_number_of_flags(
    shop: Project, django_assert_num_queries
) -> None:
    flags = [make_flag(f"f{n}", strategies=[rollout("1")]) for n in range(5)]
    with django_assert_num_queries(5):
        read_flag_cells(flags[:1])
    with django_assert_num_queries(5):
        read_flag_cells(flags)


# Filters and sorting ----------------------------------------------------------------------------------------


@pytest.fixture
def flags(shop: Project) -> None:
    now = timezone.now()
    make_flag("a-off")
    make_flag("b-ten", enabled=True, strategies=[rollout("10")], type="experiment")
    make_flag("c-all", enabled=True, strategies=[rollout("100")], stale=True)
    make_flag("d-none", enabled=True)
    make_flag("e-some", enabled=True, strategies=[rollout("100") | {"constraints": RULE}])
    old = make_flag("f-users", enabled=True, strategies=[{"name": "userWithId", "parameters": {}}])
    Flag.objects.filter(pk=old.pk).update(created_at=now - timedelta(days=41))
    for name, days in (("a-off", 0), ("b-ten", 10), ("c-all", 50)):
        moment = now - timedelta(days=days)
        FlagLastSeen.objects.create(
            flag=Flag.objects.get(name=name), environment="development", seen_at=moment
        )


def listed(**values: str) -> str:
    named = {name.replace("in_", "in-"): value for name, value in values.items()}
    flags = filter_flags(make_project_scope(Project.objects.get(pk="shop")), named)
    return " ".join(flag.name[0] for flag in flags.order_by("name"))


@for_each(
    ("values", "names"),
    [
        ({}, "a b c d e f"),
        ({"q": "o"}, "a d e"),
        ({"type": "experiment"}, "b"),
        ({"state": "stale"}, "c"),
        ({"state": "active"}, "a b d e f"),
        ({"state": "overdue"}, "f"),
        ({"seen": "1"}, "a"),
        ({"seen": "not-7"}, "b c d e f"),
        ({"seen": "not-30"}, "c d e f"),
        ({"seen": "not-90"}, "d e f"),
        ({"seen": "never"}, "d e f"),
        ({"in_development": "on"}, "b c d e f"),
        ({"in_development": "off"}, "a"),
        ({"in_development": "all"}, "c d"),
        ({"in_development": "some"}, "b e f"),
        ({"in_production": "on"}, ""),
        ({"in_development": "some", "seen": "never"}, "e f"),
    ],
)
def test_filters(flags: None, values: dict[str, str], names: str) -> None:
    assert listed(**values) == names


def test_the_filter_for_tags(flags: None) -> None:
    TagType.objects.get_or_create(name="team")
    FlagTag.objects.create(flag=Flag.objects.get(name="a-off"), tag_type_id="team", value="web")
    assert listed(tag="team:web") == "a"
    filters = {
        field.name: field for field in list_filters(make_project_scope(Project.objects.get(pk="shop")))
    }
    assert filters["tag"].options == [("team:web", "team:web")]
    assert "in-production" in filters


@for_each(
    ("sort", "names"),
    [
        ("in-development", "a f b c d e"),
        ("-in-development", "e d c b f a"),
        ("seen", "c b a d e f"),
        ("-seen", "a b c f e d"),
        ("stale", "a b d e f c"),
        ("-stale", "c f e d b a"),
        ("type", "b a c d e f"),
    ],
)
def test_sorting(flags: None, sort: str, names: str) -> None:
    rows = annotate_for_sort(Flag.objects.filter(project="shop"), PLACES, sort)
    listing = Listing(QueryDict(f"sort={sort}"), rows, columns=list_columns(PLACES))
    assert " ".join(flag.name[0] for flag in listing.rows) == names


def test_strategies_elsewhere_do_not_count(shop: Project) -> None:
    flag = make_flag("cart", enabled=True)
    add_strategy(flag, "production", **rollout("10"))
    switch_on(flag, "production")
    assert cell_of(flag).text == "100 %"
    assert cell_of(flag, "production").text == "10 %"
    assert Strategy.objects.count() == 1


@for_each(("required", "low", "high"), [([], 78, 82), (["blue"], 38, 42), (["red"], 0, 0)])
def test_variants_change_a_share_where_a_parent_must_have_one(
    shop: Project, required: list[str], low: int, high: int
) -> None:
    half = {"weight": 500, "weightType": "variable", "stickiness": "userId"}
    variants = {"variants": [{"name": name} | half for name in ("blue", "green")]}
    parent = make_flag("parent", enabled=True, strategies=[rollout("100") | variants])
    child = make_flag("child", enabled=True, strategies=[rollout("80") | variants])
    depend(child, parent, variants=required)
    assert low <= (cell_of(child).share or 0) <= high
