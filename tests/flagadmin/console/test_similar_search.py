"""The search dialog: what it shows before anything is typed, states of hits, verbs, and misspelled words."""

import pytest

from flagadmin.core.db.lookups import MAX_CANDIDATES, count_differences, find_similar_rows
from projects.models import FavoriteFlag, Flag
from tests.support.cast import make_project
from tests.support.flags import add_strategy, make_flag, switch_on
from tests.support.page_text import page_text
from tests.support.search_hits import names


@pytest.mark.parametrize(
    ("word", "name", "errors"),
    [
        ("checkout", "checkout-redesign", 0),
        ("chekout", "checkout-redesign", 1),
        ("chcekout", "checkout-redesign", 1),
        ("checkuot", "old.checkout", 1),
        ("redesing", "checkout-redesign", 1),
        ("chxkout", "checkout", 2),
        ("stael", "stale", 1),
        ("slate", "stale", None),
        ("cart", "card", 1),
        ("car", "cat", None),
        ("checkout", "search", None),
    ],
)
def test_typing_errors_are_counted(word, name, errors):
    assert count_differences([word], [name]) == errors


def test_misspelled_flags_and_projects_are_found(browse, shop):
    make_flag("checkout-redesign")
    make_flag("search-v2")

    found = names(browse("viewer"), "chekout")
    assert found == {"Flags with a similar name": ["checkout-redesign"]}
    assert names(browse("viewer"), "chekout redesing") == found
    make_project("storefront")
    assert names(browse("viewer"), "Storefornt")["Projects with a similar name"] == ["Storefront"]
    assert "Audit log" in names(browse("viewer"), "acitvity")["Pages and actions"]


def test_what_one_may_not_read_is_not_similar_to_anything(browse, shop):
    make_flag("checkout")
    make_flag("old-checkout", archived=True)

    assert names(browse("outsider"), "chekout") == {}
    assert "old-checkout" not in browse("viewer").get("/search/?q=chekout").text
    assert "No results for “chekout”. Try a flag, project or person." in page_text(
        browse("outsider").get("/search/?q=chekout")
    )


def test_few_candidates_are_compared(shop):
    Flag.objects.bulk_create(
        Flag(name=f"cart-{number}", project=shop, created_at=shop.created_at) for number in range(500)
    )
    make_flag("checkout")

    assert [flag.name for flag in find_similar_rows(Flag.objects.all(), ["chekcout"], "name", 5)] == [
        "checkout"
    ]
    assert len(find_similar_rows(Flag.objects.all(), ["carts"], "name", 1000)) <= MAX_CANDIDATES


def test_at_first_the_last_flags_and_favorites_are_offered(browse, people, shop):
    for name in ("cart", "liked", "other"):
        make_flag(name)
    FavoriteFlag.objects.create(user=people["member"], flag=Flag.objects.get(name="liked"))
    member = browse("member")
    assert names(member, "")["Favorites"] == ["liked"]

    for name in ("other", "cart", "cart"):
        member.get(f"/projects/shop/features/{name}/")

    found = names(member, "")
    assert list(found)[:2] == ["Recent", "Favorites"]
    assert found["Recent"] == ["cart", "other"]
    assert "Turn on cart in production…" in found["Actions"]
    Flag.objects.filter(name="cart").delete()
    assert names(member, "")["Recent"] == ["other"]


def test_flags_say_how_they_are_in_production(browse, shop):
    flag = make_flag("cart")
    text = page_text(browse("viewer").get("/search/?q=cart"))
    assert "cart Shop Off in production" in text

    switch_on(flag, "production")
    add_strategy(flag, "production", name="flexibleRollout", parameters={"rollout": "25"})
    assert "cart Shop 25 % in production" in page_text(browse("viewer").get("/search/?q=cart"))
    assert "Shop 1 flag" in page_text(browse("viewer").get("/search/?q=shop"))


@pytest.mark.parametrize(
    ("typed", "action"),
    [
        ("turn on checkout", "Turn on checkout in production…"),
        ("turn on chekout", "Turn on checkout in production…"),
        ("archive checkout", "Archive checkout…"),
        (">archive chekout", "Archive checkout…"),
        ("evaluate checkout for user 42", "Evaluate checkout for user 42"),
        ("evaluate chekout for 42", "Evaluate checkout for user 42"),
    ],
)
def test_verbs(browse, shop, typed, action):
    make_flag("checkout")
    assert action in names(browse("member"), typed)["Actions"]


def test_evaluating_for_a_user_fills_in_the_user(browse, shop):
    make_flag("checkout")
    page = browse("viewer").get("/search/?q=evaluate checkout for user 42").text
    assert "/features/checkout/why/?as=42" in page


def test_lists_of_flags_are_found_by_what_they_show(browse, shop):
    page = browse("viewer").get("/search/?q=stale").text
    assert 'href="/flags/?state=removable"' in page
    assert "Kill switches" in names(browse("viewer"), "kill")["Pages"]
