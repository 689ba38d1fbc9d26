"""Reading one flag or lists of flags, in a fixed number of queries."""

from unittest.mock import ANY

from django.utils import timezone

from groups.access import Caller
from projects.flags.queries import list_flag_summaries
from projects.models import FavoriteFlag, Flag, FlagEnvironment, FlagLastSeen, FlagLink, FlagTag, Segment
from tests.support.cast import make_project
from tests.support.flags import add_strategy, depend, make_flag, switch_on
from tests.support.records import refused

PATH = "/api/admin/projects/shop/features"
VARIANT = {"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}


def furnished(people):
    flag = make_flag("cart", description="d", created_by=people["member"])
    strategy = add_strategy(
        flag, "development", "flexibleRollout", parameters={"rollout": "50"}, title="half"
    )
    strategy.segments.add(Segment.objects.create(name="vip"))
    switch_on(flag)
    FlagEnvironment.objects.filter(flag=flag, environment="production").update(variants=[VARIANT])
    FlagTag.objects.create(flag=flag, tag_type_id="simple", value="ab")
    FlagLink.objects.create(flag=flag, url="https://a.b", title="T")
    FlagLastSeen.objects.create(flag=flag, environment="production", seen_at=timezone.now())
    FavoriteFlag.objects.create(flag=flag, user=people["reader"])
    parent = make_flag("parent")
    depend(flag, parent, variants=["x"])
    depend(make_flag("child", archived=True), flag)
    return flag


def test_one_flag_with_everything_in_one_environment_and_in_the_list(api, people):
    flag = furnished(people)
    response = api["reader"].get(f"{PATH}/cart?variantEnvironments=true")
    assert response.status_code == 200
    record = response.json()
    development, production = record.pop("environments")
    links = record.pop("links")
    member = {"id": people["member"].pk, "name": "member"}
    assert record.pop("createdAt")
    assert record.pop("lifecycle") == {"stage": "live", "enteredStageAt": ANY}
    assert record == {
        "name": "cart",
        "favorite": True,
        "impressionData": False,
        "description": "d",
        "project": "shop",
        "stale": False,
        "type": "release",
        "archived": False,
        "dependencies": [{"feature": "parent", "enabled": True, "variants": ["x"]}],
        "children": [],
        "collaborators": {"users": [member]},
        "createdBy": member,
    }
    assert [(link["url"], link["title"], link["feature"]) for link in links] == [("https://a.b", "T", "cart")]
    strategy = flag.strategies.get()
    assert development["strategies"] == [
        {
            "name": "flexibleRollout",
            "constraints": [],
            "variants": [],
            "parameters": {"rollout": "50"},
            "segments": [Segment.objects.get().pk],
            "sortOrder": 0,
            "id": str(strategy.pk),
            "title": "half",
            "disabled": False,
        }
    ]
    assert (development["name"], development["enabled"], development["sortOrder"]) == ("development", True, 2)
    assert (production["variants"], production["strategies"]) == ([VARIANT], [])
    assert production["lastSeenAt"]
    assert api["reader"].get(f"{PATH}/parent").json()["children"] == ["cart"]

    record = api["reader"].get(f"{PATH}/cart/environments/development").json()
    assert (record["name"], record["environment"], record["type"]) == ("cart", "development", "development")
    assert [strategy["featureName"] for strategy in record["strategies"]] == ["cart"]

    body = api["reader"].get(PATH).json()
    cart, parent = body["features"]
    assert body["version"] == 2
    assert [flag["name"] for flag in body["features"]] == ["cart", "parent"]
    assert cart["tags"] == [{"value": "ab", "type": "simple", "color": "#FFFFFF"}]
    assert "tags" not in parent
    development, production = cart["environments"]
    assert (development["hasStrategies"], development["hasEnabledStrategies"]) == (True, True)
    assert (production["hasStrategies"], production["variantCount"]) == (False, 1)

    make_flag("far", make_project("other"))
    for path in (PATH, f"{PATH}/cart"):
        refused(api["outsider"].get(path), 404, "NotFoundError")
    refused(api["reader"].get("/api/admin/projects/other/features/far"), 404, "NotFoundError")
    refused(api["reader"].get(f"{PATH}/far"), 404, "NotFoundError")
    refused(api["reader"].get(f"{PATH}/child"), 404, "NotFoundError")
    assert api["viewer"].get("/api/admin/projects/other/features/far").status_code == 200


def test_a_disabled_strategy_is_no_enabled_one(api, shop):
    add_strategy(make_flag("cart"), disabled=True)
    [flag] = api["reader"].get(PATH).json()["features"]
    assert flag["environments"][0]["hasStrategies"] is True
    assert flag["environments"][0]["hasEnabledStrategies"] is False


def test_an_environment_that_joined_later_is_shown(api, shop):
    FlagEnvironment.objects.filter(flag=make_flag("cart"), environment="production").delete()
    environments = api["reader"].get(f"{PATH}/cart").json()["environments"]
    assert [(e["name"], e["enabled"]) for e in environments] == [
        ("development", False),
        ("production", False),
    ]


def test_lists_take_a_fixed_number_of_queries(people, django_assert_num_queries):
    furnished(people)
    for number in range(20):
        flag = make_flag(f"f{number}")
        add_strategy(flag)
        FlagTag.objects.create(flag=flag, tag_type_id="simple", value="ab")
    flags = list(Flag.objects.active())
    with django_assert_num_queries(6):
        assert len(list_flag_summaries(flags, caller=Caller(user=people["reader"]))) == 22
