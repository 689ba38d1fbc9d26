"""/projects/ID/settings/: settings, environments, and archiving the project."""

from projects.models import Project
from tests.support.flags import add_strategy, make_flag, switch_on
from tests.support.for_each import for_each
from tests.support.page_text import page_text

PAGE = "/projects/shop/settings/"
GIVEN = {
    "name": "Shop",
    "mode": "private",
    "default_stickiness": "userId",
    "naming_pattern": "shop-.*",
    "naming_example": "shop-a",
}


def test_settings_are_saved(browse, shop):
    answer = browse("owner").post(PAGE, GIVEN | {"flag_limit": "10"})

    assert answer["Location"] == "/projects/shop/"
    shop.refresh_from_db()
    assert (shop.default_stickiness, shop.flag_limit, shop.naming_pattern) == ("userId", 10, "shop-.*")
    assert shop.mode == "private"


@for_each(
    ("changed", "field", "problem"),
    [
        ({"naming_pattern": "("}, "naming_pattern", "is not a valid regular expression"),
        ({"naming_example": "cart"}, "naming_example", "does not match the pattern"),
        ({"flag_limit": "0"}, "flag_limit", "greater than or equal to 1"),
        ({"name": ""}, "name", "required"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(browse, shop, changed, field, problem):
    refused = browse("owner").post(PAGE, GIVEN | changed)

    assert refused.status_code == 400
    assert problem in refused.context["form"].errors[field][0]
    assert Project.objects.get(pk="shop").naming_pattern == ""


def test_environments_are_used_and_no_longer_used_unless_flags_are_on(browse, shop):
    browser = browse("owner")

    browser.post("/projects/shop/environments", {"environment": "development", "do": "remove"})
    assert list(shop.environments.values_list("name", flat=True)) == ["production"]
    browser.post("/projects/shop/environments", {"environment": "development", "do": "add"})
    assert shop.environments.count() == 2

    flag = make_flag("cart")
    add_strategy(flag)
    switch_on(flag)

    page = browser.post(
        "/projects/shop/environments", {"environment": "development", "do": "remove"}, follow=True
    )

    assert "Flags are still on in development: cart." in page_text(page)
    assert shop.environments.count() == 2


def test_a_project_is_put_away_without_active_flags_and_taken_back(browse, shop):
    browser = browse("owner")

    assert "Archived project Shop." in page_text(browser.post("/projects/shop/archive", follow=True))
    assert "was archived on" in page_text(browser.get(PAGE))
    browser.post("/projects/shop/revive")
    shop.refresh_from_db()
    assert shop.archived_at is None

    make_flag("cart")
    browser = browse("owner")

    assert "1 flag is still active. Archive it first." in page_text(browser.get(PAGE))
    assert "1 flag is still active in project shop: cart." in page_text(
        browser.post("/projects/shop/archive", follow=True)
    )


def test_settings_are_for_those_who_may(browse, shop):
    assert 'href="/projects/shop/settings/"' not in browse("reader").get("/projects/shop/").text
    assert browse("reader").get(PAGE).status_code == 403
    assert browse("reader").post(PAGE, GIVEN).status_code == 403
    assert browse("outsider").get(PAGE).status_code == 404
    for action in ("environments", "archive", "revive"):
        assert (
            browse("reader").post(f"/projects/shop/{action}", {"environment": "production"}).status_code
            == 403
        )
