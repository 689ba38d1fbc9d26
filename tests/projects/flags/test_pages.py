"""/projects/ID/features/NAME/: content, small forms, creating and editing a flag."""

import pytest

from projects.models import Dependency, FavoriteFlag, Flag, FlagLink, FlagTag
from tests.support.cast import make_project
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.records import events

FLAG = "/projects/shop/features/cart/"


@pytest.fixture
def cart(shop):
    return make_flag("cart", description="The new cart")


def test_strategies_are_told_in_sentences(browse, cart):
    add_strategy(
        cart,
        "production",
        "flexibleRollout",
        parameters={"rollout": "25", "stickiness": "userId", "groupId": "cart"},
        constraints=[{"contextName": "country", "operator": "IN", "values": ["DE", "NO"]}],
        variants=[{"name": "blue", "weight": 1000}],
    )
    add_strategy(cart, "production", "hostGroup")

    page = page_text(browse("reader").get(FLAG))

    assert "On for 25 % of users, by userId, where country is one of DE, NO." in page
    assert "Variants: blue 100 %" in page
    assert "Uses the custom strategy hostGroup; only your SDK can evaluate it." in page


def test_many_conditions_stand_one_below_the_other(browse, cart):
    conditions = [
        {"contextName": "country", "operator": "IN", "values": [name], "value": ""}
        for name in ("DE", "NO", "US")
    ]
    add_strategy(cart, "production", "default", constraints=conditions)

    shown = browse("reader").get(FLAG).text
    assert "<li>country is one of NO</li>" in shown


def test_its_address_with_or_without_a_slash_in_its_project_only(browse, cart):
    answer = browse("reader").get(FLAG.removesuffix("/"))
    assert (answer.status_code, answer["Location"]) == (301, FLAG)

    assert browse("viewer").get("/projects/default/features/cart/").status_code == 404
    assert browse("outsider").get(FLAG).status_code == 404


def test_a_reader_is_offered_nothing_to_change(browse, cart):
    add_strategy(cart)
    page = browse("reader").get(FLAG).text

    for verb in ("switch", "tags", "parents", "links", "link", "clone", "move", "stale", "edit"):
        assert f'{FLAG}{verb}"' not in page
    assert "strategies/new" not in page
    assert "View" in page


@for_each(
    ("verb", "given"),
    [
        ("tags", {"type": "simple", "value": "shop"}),
        ("parents", {"feature": "base"}),
        ("links", {"url": "https://tickets.example/7"}),
        ("clone", {"new_name": "cart-2"}),
        ("move", {"project": "shop"}),
        ("stale", {"stale": "yes"}),
        ("order", {"environment": "production", "order": ""}),
    ],
)
def test_who_may_not_is_told_why(browse, cart, verb, given):
    make_flag("base")

    refused = browse("reader").post(FLAG + verb, given)

    assert refused.status_code == 403
    assert "You need" in page_text(refused)


def test_favorites(browse, cart, people):
    browse("reader").post(f"{FLAG}favorite", {"favorite": "on"})
    assert FavoriteFlag.objects.filter(user=people["reader"], flag=cart).exists()


def test_tags_and_what_is_refused(browse, cart):
    browser = browse("member")

    browser.post(f"{FLAG}tags", {"type": "simple", "value": "shop"})
    assert FlagTag.objects.get(flag=cart).value == "shop"
    assert "simple:shop" in page_text(browser.get(FLAG))
    browser.post(f"{FLAG}tags", {"type": "simple", "value": "shop", "do": "remove"})
    assert not FlagTag.objects.exists()

    page = browser.post(f"{FLAG}tags", {"type": "simple", "value": "x"}, follow=True)

    assert page.redirect_chain == [(FLAG, 302)]
    assert "use 2 to 50 characters" in page_text(page)


def test_dependencies(browse, cart):
    make_flag("base")
    browser = browse("member")

    browser.post(f"{FLAG}parents", {"feature": "base", "state": "on", "variants": "a, b"})
    assert Dependency.objects.get(flag=cart).variants == ["a", "b"]
    assert "Needs base on with a or b" in page_text(browser.get(FLAG))
    browser.post(f"{FLAG}parents", {"feature": "base", "do": "remove"})
    assert not Dependency.objects.exists()


def test_links(browse, cart):
    browser = browse("member")

    browser.post(f"{FLAG}links", {"url": "https://tickets.example/7", "title": "Ticket"})
    link = FlagLink.objects.get(flag=cart)
    assert ">Ticket</a>" in browser.get(FLAG).text
    assert f'{FLAG}link/{link.pk}/"' in browser.get(FLAG).text
    browser.post(f"{FLAG}link/{link.pk}/", {"url": "https://tickets.example/8", "title": ""})
    assert ">https://tickets.example/8</a>" in browser.get(FLAG).text
    browser.post(f"{FLAG}links", {"do": "remove", "id": str(link.pk)})
    assert not FlagLink.objects.exists()


def test_copying_and_moving(browse, cart):
    copied = browse("member").post(f"{FLAG}clone", {"new_name": "cart-2"})
    make_project("store")
    moved = browse("admin").post(f"{FLAG}move", {"project": "store"})

    assert copied["Location"] == "/projects/shop/features/cart-2/"
    assert moved["Location"] == "/projects/store/features/cart/"
    assert Flag.objects.get(name="cart").project_id == "store"


def test_an_archived_flag_can_be_revived_and_nothing_else(browse, shop):
    make_flag("cart", archived=True)
    browser = browse("member")

    page = browser.get(FLAG)

    assert "Archived on" in page_text(page)
    assert f"{FLAG}switch" not in page.text
    answer = browser.post("/projects/shop/features/revive", {"name": "cart", "next": FLAG})
    assert answer["Location"] == FLAG
    assert not Flag.objects.get(name="cart").is_archived


def test_creating_a_flag(browse, shop):
    form = {"name": "cart", "type": "experiment", "description": "New", "tags": "simple:shop, simple:web"}

    answer = browse("member").post("/projects/shop/features/new", form)

    assert answer["Location"] == FLAG
    flag = Flag.objects.get(name="cart")
    assert (flag.type, flag.description) == ("experiment", "New")
    assert sorted(flag.tags.values_list("value", flat=True)) == ["shop", "web"]
    assert [event.feature for event in events("feature-created")] == ["cart"]


def test_a_flag_that_is_on_from_the_beginning(browse, shop):
    form = {"name": "cart", "type": "kill-switch", "environment": "production", "rollout": "5"}

    answer = browse("member").post("/projects/shop/features/new", form)

    assert answer["Location"] == FLAG
    flag = Flag.objects.get(name="cart")
    assert [row.environment_id for row in flag.environments.filter(enabled=True)] == ["production"]
    [strategy] = flag.strategies.all()
    assert (strategy.environment_id, strategy.parameters["rollout"]) == ("production", "5")
    assert strategy.parameters["groupId"] == "cart"


def test_a_flag_that_is_on_with_the_default_strategy(browse, shop):
    form = {"name": "cart", "type": "release", "environment": "development", "rollout": ""}
    browse("member").post("/projects/shop/features/new", form)
    [strategy] = Flag.objects.get(name="cart").strategies.all()
    assert (strategy.environment_id, strategy.parameters["rollout"]) == ("development", "100")


def test_a_flag_that_cannot_be_turned_on_is_not_created(browse, shop):
    form = {"name": "cart", "type": "release", "environment": "production", "rollout": "150"}
    refused = browse("member").post("/projects/shop/features/new", form)
    assert refused.status_code == 400
    assert "rollout" in refused.context["form"].errors
    assert not Flag.objects.exists()


def test_the_form_has_a_sentence_for_each_type(browse, shop):
    page = page_text(browse("member").get("/projects/shop/features/new"))
    assert "Kill switch: Turns a feature off quickly when it causes trouble." in page
    assert "Turn on in" in page


def test_the_naming_pattern_is_shown_and_its_refusal_stands_beside_the_name(browse, shop):
    shop.naming_pattern, shop.naming_example = "shop-.*", "shop-cart"
    shop.save()
    browser = browse("member")

    assert "Pattern of this project: shop-.*, for example shop-cart" in page_text(
        browser.get("/projects/shop/features/new")
    )
    refused = browser.post("/projects/shop/features/new", {"name": "cart", "type": "release"})
    assert refused.status_code == 400
    assert "does not match" in refused.context["form"].errors["name"][0]


@for_each(
    ("given", "field", "words_of_it"),
    [
        ({"name": "apple pay"}, "name", "Spaces are not allowed. Use apple-pay?"),
        ({"name": "x", "tags": "nosuch:shop"}, "tags", "tag type nosuch not found"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(browse, shop, given, field, words_of_it):
    refused = browse("member").post("/projects/shop/features/new", {"type": "release", **given})

    assert words_of_it in refused.context["form"].errors[field][0]
    assert 'aria-invalid="true"' in refused.text


def test_a_name_that_is_taken_says_where(browse, cart):
    refused = browse("member").post("/projects/shop/features/new", {"name": "cart", "type": "release"})

    assert refused.status_code == 409
    assert "A flag named cart already exists (in project shop)." in page_text(refused)


def test_editing_a_flag(browse, cart):
    browser = browse("member")

    answer = browser.post(f"{FLAG}edit", {"type": "permission", "description": "", "stale": "on"})

    assert answer["Location"] == FLAG
    cart.refresh_from_db()
    assert (cart.type, cart.description, cart.stale) == ("permission", None, True)


@for_each("address", ["/projects/shop/features/new", f"{FLAG}edit"])
def test_forms_are_for_those_who_may(browse, cart, address):
    assert browse("reader").get(address).status_code == 403
    assert browse("reader").post(address, {"name": "x", "type": "release"}).status_code == 403
    assert browse("outsider").get(address).status_code == 404
