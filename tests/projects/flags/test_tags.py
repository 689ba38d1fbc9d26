"""Adding tags to flags and removing them."""

from projects.models import FlagTag, TagType
from tests.support.cast import make_project
from tests.support.flags import make_flag
from tests.support.records import events, refused

PATH = "/api/admin/features/cart/tags"


def tags(flag):
    return [(tag.tag_type_id, tag.value) for tag in flag.tags.all()]


def add(client, value="ab", kind="simple", path=PATH):
    return client.post(path, {"type": kind, "value": value}, format="json")


def test_adding_and_listing(api, cart):
    response = add(api["member"], "  two words æ ")
    assert (response.status_code, response.json()) == (201, {"type": "simple", "value": "  two words æ "})
    assert api["reader"].get(PATH).json() == {
        "version": 1,
        "tags": [{"type": "simple", "value": "  two words æ ", "color": "#FFFFFF"}],
    }
    [event] = events("feature-tagged")
    assert (event.feature, event.after) == ("cart", {"type": "simple", "value": "  two words æ "})

    refused(api["outsider"].get(PATH), 404, "NotFoundError")
    refused(add(api["member"], path="/api/admin/features/nope/tags"), 404, "NotFoundError")


def test_a_tag_that_is_there_is_no_error(api, cart):
    assert add(api["member"]).status_code == 201
    assert add(api["member"]).status_code == 201
    assert tags(cart) == [("simple", "ab")]
    assert len(events("feature-tagged")) == 1


def test_adding_and_removing_in_one_step(api, cart):
    add(api["member"], "old")
    body = {
        "addedTags": [{"type": "simple", "value": "new"}],
        "removedTags": [{"type": "simple", "value": "old"}, {"type": "simple", "value": "never"}],
    }
    response = api["member"].put(PATH, body, format="json")
    assert [tag["value"] for tag in response.json()["tags"]] == ["new"]
    assert [event.before["value"] for event in events("feature-untagged")] == ["old"]


def test_removing_values_with_slashes(api, cart):
    FlagTag.objects.create(flag=cart, tag_type_id="simple", value="a/b c")
    assert api["member"].delete(f"{PATH}/simple/a%2Fb%20c").status_code == 200
    assert tags(cart) == []
    # Elsewhere a slash behind an address means nothing; here it would remove the wrong tag.
    for value in ("ab", "ab/"):
        api["member"].post(PATH, {"type": "simple", "value": value})
    assert api["member"].delete(f"{PATH}/simple/ab%2F").status_code == 200
    assert [tag["value"] for tag in api["member"].get(f"{PATH}/").json()["tags"]] == ["ab"]


def test_archived_flags_keep_their_tags_in_sight(api, shop):
    flag = make_flag("cart", archived=True)
    FlagTag.objects.create(flag=flag, tag_type_id="simple", value="kept")
    assert len(api["reader"].get(PATH).json()["tags"]) == 1
    refused(add(api["member"]), 404, "NotFoundError")


def test_many_flags_at_once(api, cart, django_assert_max_num_queries):
    other = make_flag("other")
    FlagTag.objects.create(flag=other, tag_type_id="simple", value="old")
    for number in range(20):
        make_flag(f"f{number}")
    body = {
        "features": ["cart", "other", *(f"f{number}" for number in range(20))],
        "tags": {
            "addedTags": [{"type": "simple", "value": "new"}],
            "removedTags": [{"type": "simple", "value": "old"}],
        },
    }
    client = api["member"]
    with django_assert_max_num_queries(25):
        assert client.put("/api/admin/projects/shop/tags", body, format="json").status_code == 200
    assert (tags(cart), tags(other)) == ([("simple", "new")], [("simple", "new")])
    assert FlagTag.objects.count() == 22
    body["tags"] = {"addedTags": [{"type": "nope", "value": "new"}]}
    record = refused(client.put("/api/admin/projects/shop/tags", body, format="json"), 400, "ValidationError")
    assert record["details"][0]["path"] == "tags.addedTags[0].type"


def test_tags_in_use(api, cart):
    TagType.objects.create(name="area")
    FlagTag.objects.create(flag=cart, tag_type_id="area", value="checkout")
    FlagTag.objects.create(flag=cart, tag_type_id="simple", value="ab")
    FlagTag.objects.create(flag=make_flag("other"), tag_type_id="simple", value="ab")
    FlagTag.objects.create(flag=make_flag("far", make_project("far")), tag_type_id="simple", value="secret")
    reader = api["reader"]
    expected = [{"type": "area", "value": "checkout"}, {"type": "simple", "value": "ab"}]
    assert reader.get("/api/admin/tags").json() == {"version": 1, "tags": expected}
    assert reader.get("/api/admin/tags/area").json()["tags"] == expected[:1]
    assert reader.get("/api/admin/tags/simple/ab").json() == {"version": 1, "tag": expected[1]}
    refused(reader.get("/api/admin/tags/nope"), 404, "NotFoundError")
    refused(reader.get("/api/admin/tags/simple/secret"), 404, "NotFoundError")
