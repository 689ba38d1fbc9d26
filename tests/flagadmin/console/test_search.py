"""/search/: what is found, in which order, and by whom; as a page and for the dialog."""

import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from flagadmin.console.navigation import list_sections
from flagadmin.console.search.commands import SYNONYMS
from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from groups.access import Caller
from groups.models import Group
from playground.models import SavedContext
from projects.flags.queries import search_flags
from projects.models import (
    Application,
    ContextField,
    FavoriteFlag,
    Flag,
    ProjectApplication,
    Segment,
    StrategyType,
)
from tests.support.cast import make_project, make_token, make_user
from tests.support.flags import make_flag
from tests.support.search_hits import names

DIALOG = {"HX-Request": "true", "HX-Current-URL": "http://testserver/projects/shop/?page=2"}


def found_flags(callers, *words):
    return [flag.name for flag in search_flags(callers("admin"), words)]


def test_flags_are_ranked_by_where_the_word_is(callers):
    make_flag("a-description", description="The cart is new.")
    for name in ("my-discart", "old.cart", "cart-button", "cart", "new_cart"):
        make_flag(name)

    assert found_flags(callers, "CART") == [
        "cart", "cart-button", "new_cart", "old.cart", "my-discart", "a-description",
    ]  # fmt: skip


def test_every_word_has_to_match_in_any_order(callers):
    for name in ("dark-cart", "cart-dark", "cart-light"):
        make_flag(name)
    make_flag("cart", description="Dark mode")

    assert set(found_flags(callers, "dark", "cart")) == {"dark-cart", "cart-dark", "cart"}


def test_among_equals_favorites_and_recent_changes_come_first_and_archived_flags_last(callers, people):
    make_flag("cart-a", archived=True)
    for name in ("cart-b", "cart-c", "cart-d"):
        make_flag(name)
    FavoriteFlag.objects.create(user=people["admin"], flag=make_flag("cart-e"))
    record(
        Event(type=EventType.FEATURE_METADATA_UPDATED, project="shop", feature="cart-d"),
        actor=Caller.system(),
    )

    assert found_flags(callers, "cart") == ["cart-d", "cart-e", "cart-b", "cart-c", "cart-a"]


@pytest.mark.parametrize("odd", ["%", "_", "'", '"', "\\", "<b>", "(", "[a", "^", "ÆØÅ", "🙂"])
def test_odd_characters_mean_themselves(browse, shop, odd):
    Segment.objects.create(name=f"odd {odd} name")
    Segment.objects.create(name="plain")

    browser = browse("admin")

    assert [unescape(name) for name in names(browser, odd.lower())["Segments"]] == [f"odd {odd} name"]
    assert "<b>" not in browser.get("/search/", {"q": odd}).text


def test_a_name_cannot_bring_markup(browse, shop):
    Segment.objects.create(name="<script>alert(1)</script> segment")

    text = browse("admin").get("/search/", {"q": "script"}).text

    assert "&lt;<mark>script</mark>&gt;alert(1)&lt;/<mark>script</mark>&gt;" in text


def test_every_kind_is_found(browse, shop):
    make_flag("findme-flag")
    make_project("findme-project")
    Segment.objects.create(name="findme segment")
    ContextField.objects.create(name="findme-field")
    SavedContext.objects.create(name="findme user")
    make_user("findme-person")
    make_user("findme-bot", is_service=True)
    Group.objects.create(name="findme group")
    Application.objects.create(name="findme/app", folded_name="findme/app", created_at=shop.created_at)
    make_token("backend", projects=["shop"], environment="production", name="findme-token")
    StrategyType.objects.create(name="findme-type")

    hits = names(browse("admin"), "findme")

    assert list(hits) == [
        "Flags", "Projects", "Segments", "Context fields", "Saved contexts", "People", "Service accounts", "Groups",
        "Applications", "API tokens", "Strategy types", "Actions",
    ]  # fmt: skip
    assert "New flag in Findme-Project" in hits["Actions"]
    assert names(browse("admin"), "owner") | {} == names(browse("admin"), "OWNER")
    assert "Owner" in names(browse("admin"), "owner")["Roles"]


def test_every_link_leads_to_a_page(browse, shop):
    test_every_kind_is_found(browse, shop)
    browser = browse("admin")

    links = re.findall(r'<a href="([^"]*)" class="hit"', browser.get("/search/", {"q": "findme"}).text)

    assert len(links) == 16
    assert {browser.get(link.replace("&amp;", "&")).status_code for link in links} == {200}


def test_only_what_the_caller_may_read_is_found(browse, shop):
    make_project("hidden-plans")
    make_flag("hidden-flag", "hidden-plans")
    make_flag("hidden-shop-flag", "shop")
    Segment.objects.create(name="hidden segment", project_id="hidden-plans")
    make_user("hidden-person")
    Group.objects.create(name="hidden group")
    app = Application.objects.create(name="hidden-app", folded_name="hidden-app", created_at=shop.created_at)
    ProjectApplication.objects.create(
        project_id="hidden-plans",
        application_id=app.pk,
        name=app.name,
        search="",
        last_seen_at=shop.created_at,
    )
    make_token("backend", projects=["hidden-plans"], environment="production", name="hidden-token")

    assert names(browse("reader"), "hidden") == {
        "Flags": ["hidden-shop-flag"],
        "Actions": ["Evaluate hidden-shop-flag"],
    }
    assert names(browse("outsider"), "hidden") == {}
    assert "People" not in names(browse("viewer"), "hidden")


def test_tokens_are_found_by_name_and_never_by_secret(browse, shop):
    secret = make_token("backend", projects=["shop"], environment="production", name="ci")

    assert names(browse("admin"), secret[-12:]) == {}
    assert names(browse("admin"), "ci")["API tokens"] == ["ci"]


def test_all_hits_of_a_kind_are_paged(browse, shop):
    for number in range(60):
        make_flag(f"cart-{number:02}")
    browser = browse("admin")

    assert "Show all 60 flags" in browser.get("/search/", {"q": "cart"}).text
    assert len(names(browser, "cart", kind="flags")["Flags"]) == 50
    assert names(browser, "cart", kind="flags", page="2")["Flags"][-1] == "cart-59"


def test_of_very_many_flags_some_are_ranked_and_those_that_begin_with_it_among_them(browse, shop):
    names_of_all = [f"a-cart-{number:04}" for number in range(1100)] + ["cart-last", "cart"]
    Flag.objects.bulk_create(
        Flag(name=name, project=shop, created_at=shop.created_at) for name in names_of_all
    )
    browser = browse("admin")

    assert names(browser, "cart")["Flags"][:2] == ["cart", "cart-last"]
    assert re.search(r"Show the first 1,00\d flags", browser.get("/search/", {"q": "cart"}).text)


def test_the_number_of_queries_does_not_depend_on_the_data(browse, shop):
    browser = browse("admin")

    def queries(q):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert browser.get("/search/", {"q": q}).status_code == 200
        return len(queries)

    make_flag("cart", make_project("cart-project"))
    before = queries("cart")
    for number in range(30):
        make_flag(f"cart-{number}", "shop" if number % 2 else make_project(f"cart-{number}"))

    assert queries("cart") == before < 26


def test_pages_are_found_by_what_people_call_them(browse, shop):
    assert "People" in names(browse("admin"), "users")["Pages"]
    assert "Audit log" in names(browse("viewer"), "audit")["Pages"]
    assert "People" not in names(browse("viewer"), "users").get("Pages", [])


def test_synonyms_are_of_pages_that_there_are(db):
    assert set(SYNONYMS) <= {page.label for section in list_sections() for page in section.pages}


def test_actions_on_a_flag_are_those_the_caller_may_perform(browse, shop):
    make_flag("checkout", environment="production", enabled=True)

    member = names(browse("member"), "check")["Actions"]

    assert member == [
        "Evaluate checkout", "Turn off checkout in production…", "Archive checkout…", "Edit checkout",
    ]  # fmt: skip
    assert names(browse("member"), "archive check")["Actions"] == ["Archive checkout…"]
    assert names(browse("reader"), "check")["Actions"] == ["Evaluate checkout"]
    assert names(browse("member"), "new flag in shop")["Actions"] == ["New flag in Shop"]
    assert "Actions" not in names(browse("reader"), "new flag in shop")


def test_a_greater_than_sign_leaves_only_actions(browse, shop):
    make_flag("import-button")

    assert list(names(browse("admin"), ">import")) == ["Actions"]
    assert "New API token" in names(browse("admin"), ">")["Actions"]
    assert "New API token" not in names(browse("reader"), ">")["Actions"]


def test_the_dialog_gets_options(browse, shop):
    make_flag("cart")

    text = browse("admin").get("/search/", {"q": "cart"}, headers=DIALOG).text

    assert "<html" not in text
    assert 'role="option" aria-selected="false" tabindex="-1" id="flags-1"' in text
    assert 'data-q="cart"' in text
    assert 'name="next" value="/projects/shop/?page=2"' in text


@pytest.mark.parametrize("q", ["", " ", ">", "x" * 5000, "a " * 500])
def test_any_text_is_answered(browse, shop, q):
    assert browse("viewer").get("/search/", {"q": q}).status_code == 200
    assert browse("viewer").get("/search/", {"q": q, "kind": "flags", "page": "zero"}).status_code == 200
    assert browse("viewer").get("/search/", {"q": q, "kind": "nonsense"}).status_code == 200
