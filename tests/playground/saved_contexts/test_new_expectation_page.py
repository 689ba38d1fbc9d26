"""/playground/expectations/new: what a saved context expects of a flag is added without editing the context."""

from typing import Any

import pytest

from playground.models import SavedContext
from tests.support.page_text import page_text
from tests.support.playground import live_flag

PAGE = "/playground/expectations/new"


@pytest.fixture
def ada(shop: Any) -> SavedContext:
    live_flag("cart")
    live_flag("lounge")
    expected = {"flag": "lounge", "environment": "production", "enabled": True, "variant": None}
    return SavedContext.objects.create(
        name="Ada", project=shop, context={"userId": "42"}, expectations=[expected]
    )


def form(ada: SavedContext, **more: str) -> dict[str, str]:
    values = {"saved_context": str(ada.pk), "flag": "cart", "environment": "production", "enabled": "off"}
    return values | more


def test_it_is_added_to_those_that_are_there(browse: Any, ada: SavedContext) -> None:
    answer = browse("member").post(PAGE, form(ada), follow=True)

    assert "Ada: cart is off in production." in page_text(answer)
    ada.refresh_from_db()
    assert [(each["flag"], each["enabled"]) for each in ada.expectations] == [
        ("lounge", True),
        ("cart", False),
    ]


def test_a_flag_that_does_not_exist_is_refused_and_nothing_is_lost(browse: Any, ada: SavedContext) -> None:
    refused = browse("member").post(PAGE, form(ada, flag="nosuch"))
    assert refused.status_code == 400
    assert "nosuch" in page_text(refused)
    ada.refresh_from_db()
    assert len(ada.expectations) == 1


def test_the_address_fills_it_in(browse: Any, ada: SavedContext) -> None:
    page = browse("member").get(PAGE, {"flag": "cart", "environment": "development"}).text
    assert 'value="cart"' in page
    assert '<option value="development" selected>' in page
    assert "New expectation" in browse("member").get("/playground/expectations/").text


def test_the_flags_page_lists_its_own_and_those_not_met_first(browse: Any, ada: SavedContext) -> None:
    card = "/projects/shop/features/cart/expectations"
    flag_page = "/projects/shop/features/cart/"
    assert "No saved context expects anything of this flag." in browse("reader").get(flag_page).text
    assert f'hx-get="{card}"' not in browse("reader").get(flag_page).text  # nothing to check
    assert "No saved context expects anything of this flag." in browse("reader").get(card).text
    add = f"{PAGE}?flag=cart&amp;next=%2Fprojects%2Fshop%2Ffeatures%2Fcart%2F"
    assert add in browse("member").get(card).text
    assert add not in browse("reader").get(card).text

    there = browse("member").post(add.replace("&amp;", "&"), form(ada))
    assert there["Location"] == "/projects/shop/features/cart/"
    SavedContext.objects.create(
        name="Zoe", project=ada.project, context={}, expectations=[ada.expectations[0] | {"flag": "cart"}]
    )
    shown = browse("reader").get(flag_page)
    assert f'hx-get="{card}"' in shown.text
    assert page_text(shown).count("production: should be") == 2  # the rows that checking fills in
    text = page_text(browse("reader").get(card))
    assert "production: should be off, is on" in text
    assert (
        text.index("Ada") < text.index("Why") < text.index("Zoe") < text.index("production: on, as expected")
    )
    assert browse("outsider").get(card).status_code == 404


def test_it_is_for_those_who_may(browse: Any, ada: SavedContext) -> None:
    assert browse("reader").get(PAGE).status_code == 403
    assert browse("reader").post(PAGE, form(ada)).status_code == 403
    assert "New expectation" not in browse("reader").get("/playground/expectations/").text
