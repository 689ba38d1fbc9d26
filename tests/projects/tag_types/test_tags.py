"""Creating tags, and deleting a tag from all flags."""

import pytest

from projects.models import FlagTag, Tag, TagType
from tests.support.cast import make_project
from tests.support.flags import make_flag
from tests.support.records import events, refused

TAGS = "/api/admin/tags"
BLUE = {"type": "team", "value": "blue"}


@pytest.fixture
def team(shop):
    return TagType.objects.create(name="team")


def create(client, value="blue", kind="team"):
    return client.post(TAGS, {"type": kind, "value": value}, format="json")


def test_a_created_tag_is_listed_and_recorded(api, team):
    response = create(api["member"])
    assert (response.status_code, response.json()) == (201, {"version": 1, "tag": BLUE})
    assert api["viewer"].get(f"{TAGS}/team").json()["tags"] == [BLUE]
    assert api["viewer"].get(f"{TAGS}/team/blue").json() == {"version": 1, "tag": BLUE}
    [event] = events("tag-created")
    assert (event.subject, event.after) == ("team:blue", BLUE)


def test_one_that_is_there_in_use_or_not_valid(api, team):
    create(api["member"])
    refused(create(api["member"]), 409, "NameExistsError")
    FlagTag.objects.create(flag=make_flag("cart"), tag_type=team, value="green")
    refused(create(api["member"], "green"), 409, "NameExistsError")

    record = refused(create(api["member"], "x"), 400, "ValidationError")
    assert record["details"][0]["path"] == "value"
    refused(create(api["member"], kind="nope"), 400, "ValidationError")


def test_each_is_listed_once(api, team):
    FlagTag.objects.create(flag=make_flag("cart"), tag_type=team, value="green")
    for value in ("green", "blue"):
        Tag.objects.create(tag_type=team, value=value)
    tags = api["viewer"].get(TAGS).json()["tags"]
    assert [tag["value"] for tag in tags] == ["blue", "green"]


def test_deleting_takes_it_off_the_flags(api, team):
    create(api["member"])
    for name in ("cart", "menu"):
        FlagTag.objects.create(flag=make_flag(name), tag_type=team, value="blue")
    response = api["member"].delete(f"{TAGS}/team/blue")
    assert (response.status_code, response.content) == (200, b"")
    assert not Tag.objects.exists()
    assert not FlagTag.objects.exists()
    assert [event.feature for event in events("feature-untagged")] == ["cart", "menu"]
    [event] = events("tag-deleted")
    assert (event.subject, event.before) == ("team:blue", BLUE)
    refused(api["member"].delete(f"{TAGS}/team/blue"), 404, "NotFoundError")


def test_a_tag_with_a_slash_and_a_line_break_can_be_removed(api, team):
    flag = make_flag("cart")
    flag_tags = "/api/admin/features/cart/tags"
    assert api["member"].post(flag_tags, {"type": "team", "value": "a/b\nc"}).status_code == 201
    assert api["viewer"].get(f"{TAGS}/team/a%2Fb%0Ac").json()["tag"]["value"] == "a/b\nc"
    assert api["member"].delete(f"{flag_tags}/team/a%2Fb%0Ac").status_code == 200
    assert not flag.tags.exists()


def test_deleting_needs_the_right_over_every_flag_seen(api, team):
    far_flag = make_flag("far", make_project("other"))
    FlagTag.objects.create(flag=far_flag, tag_type=team, value="blue")
    # The service account may change flags of the default project, and reads the others.
    refused(api["service"].delete(f"{TAGS}/team/blue"), 403, "NoAccessError")
    # The member of one project does not see the other.
    refused(api["member"].delete(f"{TAGS}/team/blue"), 404, "NotFoundError")
    refused(api["viewer"].delete(f"{TAGS}/team/blue"), 403, "NoAccessError")
    assert FlagTag.objects.count() == 1
    assert api["admin"].delete(f"{TAGS}/team/blue").status_code == 200
