"""/tag-types/ and /strategy-types/: the lists, creating, changing, and what blocks deletion."""

import pytest

from projects.models import FlagTag, Segment, StrategyType, TagType
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.page_text import csv_rows, page_text
from tests.support.scenery import make_vocabulary

HOSTS = {"name": "hosts", "type": "list", "description": "the hosts", "required": True}


@pytest.fixture
def hosts(shop):
    return StrategyType.objects.create(name="hostGroup", parameters=[HOSTS])


def test_tag_types_are_listed_with_their_use_which_keeps_them(browse, shop):
    FlagTag.objects.create(flag=make_flag("cart"), tag_type_id="simple", value="shop")

    assert csv_rows(browse("reader").get("/tag-types/?format=csv"))[1][0::2] == ["simple", "1"]

    browser = browse("editor")

    assert "Delete<" not in browser.get("/tag-types/").text
    page = browser.post("/tag-types/simple/delete", follow=True)
    assert "Tag type simple is in use on 1 flag: cart." in page.text

    TagType.objects.exclude(pk="simple").delete()
    assert ">1 tag type<" in browse("reader").get("/tag-types/").text


def test_a_tag_type_is_created_changed_and_deleted(browse, shop):
    browser = browse("editor")

    assert browser.post("/tag-types/new", {"name": "team"})["Location"] == "/tag-types/"
    browser.post("/tag-types/team/", {"description": "Who owns it", "color": "#00FF00"})
    assert TagType.objects.get(pk="team").description == "Who owns it"
    browser.post("/tag-types/team/delete")
    assert not TagType.objects.filter(pk="team").exists()

    refused = browse("editor").post("/tag-types/new", {"name": "team", "color": "green"})

    assert refused.status_code == 400
    assert "is not a color" in refused.context["form"].errors["color"][0]


def test_strategy_types_are_listed_with_what_they_take_and_marked_as_custom(browse, hosts):
    add_strategy(make_flag("cart"), name="hostGroup")

    assert ["hostGroup", "", "hosts", "1"] in csv_rows(browse("reader").get("/strategy-types/?format=csv"))

    StrategyType.objects.get_or_create(name="userWithId")

    rows = {row.name: row.mark[0] for row in browse("reader").get("/strategy-types/").context["rows"]}
    assert (rows["hostGroup"], rows["userWithId"], rows["flexibleRollout"]) == ("custom", "legacy", "")


def test_a_strategy_type_is_created_with_parameters_and_built_in_ones_stay(browse, shop):
    sent = {"name": "hostGroup", "parameters": "hosts :: list* :: the hosts\r\nwith spaces\r\nmost :: number"}

    browse("editor").post("/strategy-types/new", sent)

    stored = StrategyType.objects.get(pk="hostGroup").parameters
    assert stored[0] == HOSTS
    assert [(item["name"], item["type"]) for item in stored[1:]] == [
        ("with spaces", "string"),
        ("most", "number"),
    ]

    refused = browse("editor").post("/strategy-types/new", {"name": "x", "parameters": "hosts :: nosuch"})

    assert refused.status_code == 400
    assert "Must be one of" in refused.context["form"].errors["parameters"][0]

    assert browse("editor").get("/strategy-types/flexibleRollout/").status_code == 403
    page = browse("editor").post("/strategy-types/flexibleRollout/delete", follow=True)
    assert StrategyType.objects.filter(pk="flexibleRollout").exists()
    assert page.redirect_chain == [("/strategy-types/", 302)]


def test_what_the_form_shows_is_stored_deprecated_reactivated_and_deleted(browse, hosts):
    browser = browse("editor")
    shown = browser.get("/strategy-types/hostGroup/").context["form"].initial

    browser.post("/strategy-types/hostGroup/", shown)

    hosts.refresh_from_db()
    assert hosts.parameters == [HOSTS]

    browser.post("/strategy-types/hostGroup/deprecate")
    assert StrategyType.objects.get(pk="hostGroup").deprecated
    page = browser.post("/strategy-types/hostGroup/reactivate", follow=True)
    assert "Reactivated strategy type hostGroup." in page.text
    browser.post("/strategy-types/hostGroup/delete")
    assert not StrategyType.objects.filter(pk="hostGroup").exists()


@for_each(
    "address",
    [
        "/tag-types/new", "/tag-types/simple/", "/tag-types/simple/delete", "/strategy-types/new",
        "/strategy-types/hostGroup/", "/strategy-types/hostGroup/deprecate", "/strategy-types/hostGroup/delete",
        "/context-fields/new", "/context-fields/plan/", "/context-fields/plan/delete",
        "/segments/new", "/segments/{segment}/", "/segments/{segment}/delete",
    ],
)  # fmt: skip
def test_who_may_not_is_told_why(browse, shop, address):
    make_vocabulary()
    address = address.format(segment=Segment.objects.get(name="vip-users").pk)
    reader = browse("reader")

    refused = reader.post(address, {"name": "x"})

    assert refused.status_code == 403
    assert 'You need the "' in page_text(refused)
    if address.endswith(("new", "/")):
        assert 'You need the "' in page_text(reader.get(address))


@for_each("address", ["/tag-types/", "/strategy-types/", "/context-fields/", "/segments/"])
def test_nothing_is_offered_to_those_who_may_not(browse, shop, address):
    make_vocabulary()
    shown = browse("reader").get(address).text
    assert f"{address}new" not in shown
    assert "Delete<" not in shown
