"""Removing a dependency and reordering strategies: in production, a page first says who changes."""

from typing import Any

import pytest
from django.utils.http import urlencode

from playground.models import SavedContext
from projects.models import Dependency, Strategy
from tests.support.flags import add_strategy, depend, make_flag
from tests.support.for_each import for_each
from tests.support.page_text import page_text
from tests.support.playground import live_flag

CHILD = "/projects/shop/features/child/"
BLUE, GREEN = (
    [{"name": name, "weight": 1000, "weightType": "variable", "stickiness": "default"}]
    for name in ("blue", "green")
)


@pytest.fixture
def child(shop: Any) -> Any:
    """Blue for everybody while the parent is on, which it is not."""
    flag = live_flag("child", strategies=[{"name": "default", "variants": BLUE}])
    add_strategy(flag, "production", variants=GREEN, sort_order=1)
    depend(flag, make_flag("parent"))
    return flag


def remove() -> dict[str, str]:
    return {"do": "remove", "feature": "parent", "next": "/projects/shop/"}


def variants_in_order() -> list[str]:
    return [strategy.variants[0]["name"] for strategy in Strategy.objects.order_by("sort_order")]


def swap(environment: str = "production") -> dict[str, str]:
    ids = Strategy.objects.filter(environment=environment).order_by("sort_order").values_list("pk", flat=True)
    first, *_ = listed = [str(one) for one in ids]
    return {"environment": environment, "order": ",".join(listed), "move": f"down {first}", "next": CHILD}


def asked(browser: Any, url: str, sent: dict[str, str]) -> Any:
    """The page that production asks on, from the button's form."""
    answer = browser.post(url, sent)
    assert answer.status_code == 302
    assert answer["Location"].startswith(f"{url}?")
    return browser.get(answer["Location"])


def beside(browser: Any, url: str, sent: dict[str, str]) -> str:
    """What htmx loads into the page."""
    answer = browser.post(f"/if-saved{url}?{urlencode(sent)}", sent, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return page_text(answer)


def test_removing_a_dependency(browse, child):
    member = browse("member")
    page = asked(member, f"{CHILD}parents", remove())
    assert "Remove the dependency of child on parent" in page_text(page)
    assert dict(page.context["hidden"]) == remove()
    assert "10,000 off → on" in beside(member, f"{CHILD}parents", remove())
    assert Dependency.objects.exists()
    done = member.post(f"{CHILD}parents", {**remove(), "confirmed": "yes"})
    assert done["Location"] == "/projects/shop/"
    assert not Dependency.objects.exists()


def test_reordering_strategies(browse, child):
    Dependency.objects.all().delete()
    member = browse("member")
    expectation = {"flag": "child", "environment": "production", "enabled": True, "variant": "blue"}
    SavedContext.objects.create(name="Ada", expectations=[expectation])
    sent = swap()
    page = asked(member, f"{CHILD}order", sent)
    assert "Reorder the strategies of child in production" in page_text(page)
    shown = beside(member, f"{CHILD}order", sent)
    assert "10,000 of 10,000 generated users change" in shown
    assert "child is on, variant green in production for Ada, expected on, variant blue" in shown
    assert variants_in_order() == ["blue", "green"]
    member.post(f"{CHILD}order", {**sent, "confirmed": "yes"})
    assert variants_in_order() == ["green", "blue"]


def test_where_the_flag_is_off_it_happens_at_once(browse, child):
    child.environments.update(enabled=False)
    member = browse("member")
    assert member.post(f"{CHILD}order", swap())["Location"] == CHILD
    assert variants_in_order() == ["green", "blue"]
    assert member.post(f"{CHILD}parents", remove())["Location"] == "/projects/shop/"
    assert not Dependency.objects.exists()


def test_outside_production_it_happens_at_once(browse, child):
    child.environments.filter(environment="development").update(enabled=True)
    child.environments.filter(environment="production").update(enabled=False)
    Strategy.objects.update(environment="development")
    browse("member").post(f"{CHILD}order", swap("development"))
    assert variants_in_order() == ["green", "blue"]


@for_each("part", ["parents", "order"])
def test_who_may_not_do_it_is_not_asked(browse, child, part):
    sent = remove() if part == "parents" else swap()
    reader = browse("reader")
    assert reader.post(f"{CHILD}{part}", sent).status_code == 403
    assert reader.get(f"{CHILD}{part}", sent).status_code == 403
    assert reader.post(f"{CHILD}{part}", {**sent, "confirmed": "yes"}).status_code == 403


def test_a_dependency_that_is_gone_leads_back(browse, child):
    Dependency.objects.all().delete()
    member = browse("member")
    assert member.get(f"{CHILD}parents", remove())["Location"] == "/projects/shop/"
    assert "does not depend on parent" in page_text(member.post(f"{CHILD}parents", remove(), follow=True))


def test_archiving_dependants_too_is_part_of_the_prediction(browse, shop):
    parent = live_flag("base")
    depend(live_flag("child"), parent)
    expectation = {"flag": "child", "environment": "production", "enabled": True, "variant": None}
    SavedContext.objects.create(name="Ada", expectations=[expectation])
    url, sent = "/projects/shop/features/archive", {"name": "base"}
    member = browse("member")
    assert f'hx-post="/if-saved{url}" hx-trigger="change"' in member.get(f"{url}?name=base").text
    alone, both = (beside(member, url, {**sent, **more}) for more in ({}, {"dependants": "yes"}))
    assert "base cannot be archived: child would lose what it depends on." in alone
    assert "child in production" not in alone
    assert "child in production" in both
    assert both.count("Breaks 1 expectation") == 1
