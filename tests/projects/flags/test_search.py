"""GET /api/admin/search/features."""

from datetime import timedelta

import pytest
from django.utils import timezone

from projects.models import FavoriteFlag, Flag, FlagLastSeen, FlagTag, LifecycleStage, Segment, TagType
from tests.support.cast import make_project
from tests.support.flags import add_strategy, depend, make_flag, switch_on
from tests.support.for_each import for_each
from tests.support.records import refused

PATH = "/api/admin/search/features"


@pytest.fixture
def flags(people):
    """cart, a stale experiment with everything; search, plain; old, archived; far, in another project."""
    TagType.objects.create(name="area")
    cart = make_flag(
        "cart", type="experiment", description="100% of it", stale=True, created_by=people["member"]
    )
    switch_on(cart)
    add_strategy(cart).segments.add(Segment.objects.create(name="vip"))
    FlagTag.objects.create(flag=cart, tag_type_id="simple", value="two words")
    FlagTag.objects.create(flag=cart, tag_type_id="area", value="checkout")
    LifecycleStage.objects.create(flag=cart, stage="live", entered_at=timezone.now())
    search = make_flag("search")
    FlagTag.objects.create(flag=search, tag_type_id="simple", value="two words")
    LifecycleStage.objects.create(flag=search, stage="initial", entered_at=timezone.now())
    depend(search, cart)
    make_flag("old", archived=True)
    make_flag("far", make_project("other"))


def found(client, **parameters):
    response = client.get(PATH, {"sortBy": "name", **parameters})
    assert response.status_code == 200, response.json()
    body = response.json()
    assert body["total"] >= len(body["features"])
    return [flag["name"] for flag in body["features"]]


def test_active_flags_that_may_be_seen(api, flags):
    assert found(api["viewer"]) == ["cart", "far", "search"]
    assert found(api["reader"]) == ["cart", "search"]
    assert found(api["outsider"]) == []


def test_the_record(api, people, flags):
    cart = api["reader"].get(PATH, {"query": "cart"}).json()["features"][0]
    assert {
        key: cart[key] for key in ("project", "archivedAt", "dependencyType", "segments", "createdBy")
    } == {
        "project": "shop",
        "archivedAt": None,
        "dependencyType": "parent",
        "segments": ["vip"],
        "createdBy": {"id": people["member"].pk, "name": "member"},
    }
    assert [e["name"] for e in cart["environments"]] == ["development", "production"]
    archived = api["reader"].get(PATH, {"archived": "IS:true"}).json()["features"][0]
    assert archived["archivedAt"]
    assert cart["lifecycle"]["stage"] == "live"
    assert {"type": "area", "value": "checkout", "color": None} in cart["tags"]


@for_each(
    ("parameters", "names"),
    [
        ({"project": "IS:other"}, ["far"]),
        ({"project": "IS_ANY_OF:other, shop"}, ["cart", "far", "search"]),
        ({"project": "IS_NOT:other"}, ["cart", "search"]),
        ({"project": "IS_NONE_OF:other,shop"}, []),
        ({"archived": "IS:true"}, ["old"]),
        ({"archived": "IS:false"}, ["cart", "far", "search"]),
        ({"state": "IS:stale"}, ["cart"]),
        ({"state": "IS_NOT:stale"}, ["far", "search"]),
        ({"type": "IS:experiment"}, ["cart"]),
        ({"tag": "INCLUDE:simple:two words"}, ["cart", "search"]),
        ({"tag": "INCLUDE_ALL_OF:simple:two words, area:checkout"}, ["cart"]),
        ({"tag": "INCLUDE_ANY_OF:area:checkout, area:nope"}, ["cart"]),
        ({"tag": "DO_NOT_INCLUDE:area:checkout"}, ["far", "search"]),
        ({"tag": "EXCLUDE_ALL:simple:two words, area:checkout"}, ["far", "search"]),
        ({"segment": "INCLUDE:vip"}, ["cart"]),
        ({"segment": "EXCLUDE_IF_ANY_OF:vip"}, ["far", "search"]),
        ({"lifecycle": "IS:live"}, ["cart"]),
        ({"lifecycle": "IS:archived"}, ["old"]),
        ({"lifecycle": "IS_ANY_OF:archived, live"}, ["cart", "old"]),
        ({"lifecycle": "IS_NOT:archived"}, ["cart", "far", "search"]),
        ({"lifecycle": "IS:archived", "archived": "IS:false"}, []),
        ({"createdAt": "IS_ON_OR_AFTER:2020-01-01"}, ["cart", "far", "search"]),
        ({"createdAt": "IS_BEFORE:2020-01-01"}, []),
        ({"status": "development:enabled"}, ["cart"]),
        ({"status": ["development:enabled", "production:enabled"]}, ["cart"]),
        ({"status": "development:disabled"}, ["far", "search"]),
        ({"query": "AR"}, ["cart", "far", "search"]),
        ({"query": "100%"}, ["cart"]),
        ({"query": "a_t"}, []),
        ({"query": "area:check, far"}, ["cart", "far"]),
        ({"query": " , "}, ["cart", "far", "search"]),
        ({"query": "ar", "state": "IS:active", "project": "IS:shop"}, ["search"]),
        ({"sortOrder": "desc"}, ["search", "far", "cart"]),
        ({"sortBy": "type"}, ["cart", "search", "far"]),
        ({"limit": "1", "offset": "1"}, ["far"]),
        ({"offset": "10"}, []),
    ],
)
def test_filters(api, flags, parameters, names):
    assert found(api["viewer"], **parameters) == names


def test_who_created_it(api, people, flags):
    assert found(api["viewer"], createdBy=f"IS:{people['member'].pk}") == ["cart"]

    Flag.objects.filter(name="cart").update(created_by=None)
    assert api["viewer"].get(PATH, {"query": "cart"}).json()["features"][0]["createdBy"] == {
        "id": 0,
        "name": "unknown",
    }


def test_totals_favorites_and_last_seen(api, flags, people):
    for offset in (0, 2, 50):
        assert api["viewer"].get(PATH, {"limit": 1, "offset": offset}).json()["total"] == 3

    FavoriteFlag.objects.create(user=people["viewer"], flag=Flag.objects.get(name="search"))
    assert found(api["viewer"], favoritesFirst="true") == ["search", "cart", "far"]

    cart, now = Flag.objects.get(name="cart"), timezone.now()
    for environment, seen in (("development", now - timedelta(days=9)), ("production", now)):
        FlagLastSeen.objects.create(flag=cart, environment=environment, seen_at=seen)
    tomorrow = (now + timedelta(days=1)).date()
    assert found(api["viewer"], lastSeenAt=f"IS_BEFORE:{tomorrow}") == ["cart"]
    assert found(api["viewer"], lastSeenAt=f"IS_BEFORE:{now.date()}") == []
    assert found(api["viewer"], lastSeenAt=f"IS_ON_OR_AFTER:{now.date()}") == ["cart"]


@for_each(
    ("sort_by", "names"),
    [
        ("lastSeenAt", ["far", "cart", "search"]),
        ("environment:development", ["far", "search", "cart"]),
        ("environment:nowhere", ["cart", "far", "search"]),
        ("createdBy", ["cart", "far", "search"]),
        ("description", ["search", "cart", "far"]),
    ],
)
def test_sorting(api, people, flags, sort_by, names):
    far, cart = (Flag.objects.get(name=name) for name in ("far", "cart"))
    now = timezone.now()
    for order, name in enumerate(("cart", "far", "search")):
        Flag.objects.filter(name=name).update(created_at=now + timedelta(seconds=order))
    for flag, age in ((far, 3), (far, 9), (cart, 1)):
        seen = now - timedelta(days=age)
        FlagLastSeen.objects.create(flag=flag, environment=f"{age}", seen_at=seen)
    Flag.objects.filter(name="search").update(description="A first one")
    Flag.objects.filter(name="cart").update(description="B")
    assert found(api["viewer"], sortBy=sort_by) == names


@for_each(
    "odd",
    [
        {"sortBy": "odd"},
        {"sortBy": ""},
        {"sortOrder": "odd"},
        {"favoritesFirst": "odd"},
        {"limit": "0"},
        {"limit": "abc"},
        {"limit": "1001"},
        {"offset": "-1"},
        {"offset": "x"},
    ],
)
def test_odd_orders_and_pages_count_as_the_default(api, flags, odd):
    assert sorted(found(api["viewer"], **odd)) == ["cart", "far", "search"]


@for_each(
    ("parameters", "path"),
    [
        ({"project": "LIKE:x"}, "project"),
        ({"project": "shop"}, "project"),
        ({"state": "IS:odd"}, "state"),
        ({"archived": "IS_NOT:true"}, "archived"),
        ({"tag": "INCLUDE:simple"}, "tag"),
        ({"createdAt": "IS_BEFORE:2020-13-01"}, "createdAt"),
        ({"createdBy": "IS:me"}, "createdBy"),
        ({"lifecycle": "IS:odd"}, "lifecycle"),
        ({"status": "development"}, "status"),
        ({"status": ["development:enabled"] * 51}, "status"),
        ({"query": "a," * 60}, "query"),
        ({"lastSeenAt": "IS:2026-11-21"}, "lastSeenAt"),
        ({"bogus": "1"}, "bogus"),
    ],
)
def test_parameters_that_are_refused(api, flags, parameters, path):
    record = refused(api["viewer"].get(PATH, parameters), 400, "ValidationError")
    assert [problem["path"] for problem in record["details"]] == [path]


def test_a_fixed_number_of_queries(api, flags, django_assert_max_num_queries):
    for number in range(20):
        add_strategy(make_flag(f"f{number}"))
    client = api["reader"]
    client.get(PATH)
    with django_assert_max_num_queries(16):
        assert len(client.get(PATH).json()["features"]) == 22
