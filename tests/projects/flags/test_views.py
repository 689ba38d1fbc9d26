"""Saved views of the list of all flags: tabs of their owner alone, also by API."""

from typing import Any

import pytest

from flagadmin.core.lists.pages import MAX_OPTIONS
from projects.flags.lists.views import MAX_VIEWS
from projects.models import Flag, FlagTag, FlagView
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db
API = "/api/admin/flag-views"
MINE = "project=shop&state=stale&sort=-name"


def save(browser: Any, name: str = "Mine to tidy", query: str = MINE) -> Any:
    return browser.post(
        "/flags/views/", {"name": name, "query": query, "next": f"/flags/?{query}"}, follow=True
    )


def test_a_list_is_saved_shown_as_a_tab_and_deleted(browse: Any, shop: Any) -> None:
    live_flag("cart")
    Flag.objects.update(stale=True)
    viewer = browse("viewer")
    assert "Save this view" not in page_text(viewer.get("/flags/"))
    assert "Save this view" in page_text(viewer.get(f"/flags/?{MINE}&page=1"))
    page = save(viewer)
    assert "Saved view Mine to tidy." in page_text(page)
    assert f'<a href="?{MINE.replace("&", "&amp;")}" aria-current="true">Mine to tidy</a>' in page.text
    assert page.text.count('aria-current="true">All') == 0
    assert "Save this view" not in page_text(page)
    assert "Mine to tidy" in page_text(viewer.get("/flags/"))
    assert "Mine to tidy" not in page_text(browse("owner").get("/flags/"))
    [view] = FlagView.objects.all()
    assert browse("owner").post(f"/flags/views/{view.pk}/delete", follow=True).status_code == 404
    assert "Deleted view Mine to tidy." in page_text(
        viewer.post(f"/flags/views/{view.pk}/delete", follow=True)
    )
    assert not FlagView.objects.exists()


def test_a_project_offers_the_views_that_narrow_its_list(browse: Any, shop: Any) -> None:
    live_flag("cart")
    viewer, own = browse("viewer"), "/projects/shop/?state=stale"
    assert "Save this view" in page_text(viewer.get(own))
    assert "Save this view" not in page_text(viewer.get("/projects/shop/?show=archived&q=c"))
    for name, query in (
        ("Stale", "state=stale"),
        ("Of the shop", MINE),
    ):  # a list of one project has no projects
        viewer.post("/flags/views/", {"name": name, "query": query, "next": own})
    page = viewer.get(own)
    assert '<a href="?state=stale" aria-current="true">Stale</a>' in page.text
    assert "Delete view" in page_text(page)
    assert ">Of the shop<" not in page.text


@for_each(
    ("name", "query", "fault"),
    [
        ("", MINE, "must have 1 to 60 characters, not 0"),
        ("x" * 61, MINE, "must have 1 to 60 characters, not 61"),
        ("a", "colour=red", "has no parameter colour. Available: changed, "),
        ("a", "page=2", "has no filter"),
        ("a", f"q={'x' * 2000}", "has more than 2,000 characters"),
    ],
)
def test_a_view_that_is_none_is_refused(browse: Any, shop: Any, name: str, query: str, fault: str) -> None:
    assert fault in page_text(save(browse("viewer"), name, query))
    assert not FlagView.objects.exists()


def test_the_same_name_replaces_and_their_number_is_limited(browse: Any, shop: Any) -> None:
    viewer = browse("viewer")
    for number in range(MAX_VIEWS):
        save(viewer, f"v{number}")
    assert f"You have {MAX_VIEWS} views, the maximum." in page_text(save(viewer, "one more"))
    save(viewer, "v0", "owner=mine")
    assert FlagView.objects.get(name="v0").query == "owner=mine"
    assert FlagView.objects.count() == MAX_VIEWS


def test_by_api(api: Any, shop: Any) -> None:
    viewer, owner = api["viewer"], api["owner"]
    saved = viewer.post(API, {"name": "Mine", "query": "owner=mine"}, format="json")
    assert (saved.status_code, saved.json()) == (
        200,
        {"id": saved.json()["id"], "name": "Mine", "query": "owner=mine"},
    )
    assert viewer.get(API).json() == [saved.json()]
    assert owner.get(API).json() == []
    odd = viewer.post(API, {"name": "Odd", "query": "owner=mine&state=a%00"}, format="json")
    assert odd.status_code == 400
    assert "query: has a control character, such as %00, in state" in odd.text
    address = f"{API}/{saved.json()['id']}"
    assert owner.delete(address).status_code == 404
    assert viewer.delete(address).status_code == 204
    assert viewer.delete(address).status_code == 404
    assert "colour" in viewer.post(API, {"name": "a", "query": "colour=red"}, format="json").text


def test_more_filters_offers_a_projects_tags_by_typing_if_there_are_many(browse: Any, shop: Any) -> None:
    cart = live_flag("cart")
    viewer, typed = browse("viewer"), '<input name="tag"'
    offered = '<p class="tiny muted">Tag</p>'
    made = [FlagTag(flag=cart, tag_type_id="simple", value=f"t{number}") for number in range(MAX_OPTIONS + 1)]
    seen = []
    for tags in (), made[:1], made[1:]:
        FlagTag.objects.bulk_create(tags)
        page = viewer.get("/projects/shop/").text
        seen.append((offered in page, typed in page))
    assert seen == [(False, False), (True, False), (False, True)]
