"""The uses of context fields are counted again only in projects that have changed."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from projects.models import Flag, FlagEnvironment, ProjectEnvironment, Segment, Strategy, StrategySegment
from projects.used_by import queries
from tests.support.cast import make_project
from tests.support.flags import add_strategy, make_flag

PLAN = {"contextName": "plan", "operator": "IN", "values": ["pro"]}
COUNTRY = {"contextName": "country", "operator": "IN", "values": ["NO"]}
CITY = {"contextName": "city", "operator": "IN", "values": ["Oslo"]}
TIER = {"contextName": "tier", "operator": "IN", "values": ["1"]}


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    queries.cache.clear()
    yield
    queries.cache.clear()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The projects whose flags were counted, one list for each time."""
    calls: list[list[str]] = []
    real = queries._read_rows

    def noted(statement: str, projects: Any) -> Any:
        if statement == queries._COUNT_FIELDS:
            calls.append(sorted(projects))
        return real(statement, projects)

    monkeypatch.setattr(queries, "_read_rows", noted)
    return calls


@pytest.fixture
def cart(shop: Any) -> Flag:
    make_project("docs")
    add_strategy(make_flag("help", "docs"), constraints=[PLAN, COUNTRY])
    cart = make_flag("cart")
    add_strategy(cart, constraints=[PLAN])
    return cart


def uses(api: Any, account: str = "admin") -> dict[str, tuple[int, int]]:
    """Of the fields, by name: flags and projects."""
    fields = api[account].get("/api/admin/context").json()
    return {field["name"]: (field["usedInFeatures"], field["usedInProjects"]) for field in fields}


@pytest.fixture
def fields(api: Any) -> None:
    for name in ("plan", "country", "city", "tier", "age"):
        assert api["admin"].post("/api/admin/context", {"name": name}).status_code == 201


def test_only_changed_projects_are_counted(api: Any, fields: None, cart: Flag, counted: list[Any]) -> None:
    assert uses(api)["plan"] == uses(api)["plan"] == (2, 2)
    add_strategy(cart, constraints=[COUNTRY])
    assert uses(api)["country"] == (2, 2)
    assert counted == [["default", "docs", "shop"], ["shop"]]


def test_counted_ahead_for_readable_projects(api: Any, fields: None, cart: Flag, counted: list[Any]) -> None:
    queries.count_ahead()
    assert uses(api)["plan"] == (2, 2)
    assert counted == [["default", "docs", "shop"]]

    assert uses(api)["plan"] == (2, 2)
    assert uses(api, "member")["plan"] == (1, 1)  # of shop only


def link_segment(cart: Flag) -> None:
    segment = Segment.objects.create(name="a segment", constraints=[CITY])
    StrategySegment.objects.create(strategy=Strategy.objects.filter(flag=cart)[0], segment=segment)


def set_default(cart: Flag) -> None:
    strategy = {"name": "userWithId", "parameters": {}, "constraints": [CITY], "segments": []}
    ProjectEnvironment.objects.filter(project="shop").update(default_strategy=strategy)


CHANGES = {
    "a strategy": lambda cart: add_strategy(cart, "production", constraints=[COUNTRY]),
    "a type that reads a field": lambda cart: Strategy.objects.filter(flag=cart).update(name="userWithId"),
    "a segment": link_segment,
    "another constraint in it": lambda cart: Segment.objects.update(constraints=[TIER]),
    "variants": lambda cart: FlagEnvironment.objects.filter(flag=cart).update(
        variants=[{"name": "a", "weight": 1000, "stickiness": "age"}]
    ),
    "a default strategy": set_default,
    "another project": lambda cart: Flag.objects.filter(pk=cart.pk).update(project="docs"),
    "a default stickiness": lambda cart: type(cart.project).objects.update(default_stickiness="plan"),
    "an archived flag": lambda cart: Flag.objects.filter(pk=cart.pk).update(archived_at=timezone.now()),
}


def test_after_every_change_as_counted_afresh(api: Any, fields: None, cart: Flag) -> None:
    before = uses(api)
    for name, change in CHANGES.items():
        change(cart)
        after = uses(api)
        queries.cache.clear()
        assert after == uses(api), name
        assert after != before, name
        before = after
