"""The share of a flag, changed below its row in a list or, without JavaScript, on a page of its own."""

import re
from typing import Any

import pytest

from projects.models import Flag, Strategy
from releases.models import ChangeRequest
from tests.support.change_requests import guarded
from tests.support.flags import add_strategy
from tests.support.page_text import page_text
from tests.support.playground import live_flag

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/projects/shop/features/cart/share?environmentId=production"
BY_SCRIPT = {"HX-Request": "true"}
HALF = {"name": "flexibleRollout", "parameters": {"rollout": "50", "stickiness": "userId", "groupId": "cart"}}


@pytest.fixture
def cart(shop: Any) -> Flag:
    return live_flag("cart", strategies=[HALF])


def stored() -> tuple[str, Any]:
    strategy = Strategy.objects.get(environment="production")
    return strategy.name, strategy.parameters.get("rollout")


def save(browser: Any, share: str, **more: str) -> Any:
    return browser.post(URL, {"share": share, "next": "/flags/", **more})


def test_it_is_asked_below_the_row_and_on_a_page(browse: Any, cart: Flag) -> None:
    member = browse("member")
    button = re.search(r'<button id="p\d+-\d+" form="pick" formaction="([^"]+)"', member.get("/flags/").text)
    assert button
    assert button[1] == "/projects/shop/features/cart/share"
    row = member.get(f"{URL}&row=yes", headers=BY_SCRIPT).text
    assert '<tr class="ask">' in row
    assert "<html" not in row
    page = member.get(f"{URL}&next=/flags/")
    assert "Change the share of cart in production" in page_text(page)
    assert 'name="share" min="0" max="100" step="1" value="50"' in page.text
    who = member.post(f"/if-saved{URL}", {"share": "60"}, headers=BY_SCRIPT)
    assert re.search(r"1,0\d\d of 10,000 generated users change|9\d\d of 10,000", page_text(who))


@pytest.mark.parametrize(
    ("strategy", "share", "after"),
    [
        (HALF, "0", ("flexibleRollout", "0")),
        (HALF, "100", ("flexibleRollout", "100")),
        ({"name": "default"}, "20", ("flexibleRollout", "20")),
        ({"name": "default"}, "100", ("default", None)),
    ],
)
def test_it_is_saved_and_undone(browse: Any, shop: Any, strategy: Any, share: str, after: Any) -> None:
    live_flag("cart", strategies=[strategy])
    member = browse("member")
    assert save(member, share)["Location"] == "/flags/"
    assert stored() == after


@pytest.mark.parametrize(("share", "fault"), [("101", "100"), ("", "whole number"), ("ten", "whole number")])
def test_a_share_that_is_none_is_refused(browse: Any, cart: Flag, share: str, fault: str) -> None:
    answer = save(browse("member"), share)
    assert answer.status_code == 400
    assert fault in page_text(answer)
    below = browse("member").post(f"{URL}&row=yes", {"share": share, "next": "/flags/"}, headers=BY_SCRIPT)
    assert below["HX-Redirect"] == "/flags/"
    assert stored() == ("flexibleRollout", "50")


def test_a_change_in_between_is_not_overwritten(browse: Any, cart: Flag) -> None:
    member = browse("member")
    [version] = re.findall(r'name="expected" value="([^"]+)"', member.get(URL).text)
    assert save(member, "20").status_code == 302
    late = save(member, "90", expected=version)
    assert late.status_code == 409
    assert "Stored now: On for 20 % of users" in page_text(late)
    assert stored()[1] == "20"


def test_several_strategies_and_named_users_have_no_share(browse: Any, cart: Flag) -> None:
    add_strategy(cart, "production", sort_order=1)
    assert 'form="pick" formaction' not in browse("member").get("/flags/").text
    answer = browse("member").get(URL)
    assert "cart has no single strategy with a percentage in production" in page_text(answer)
    assert answer.status_code == 403


def test_it_needs_the_permission_and_a_request_where_changes_do(browse: Any, cart: Flag) -> None:
    viewer = browse("viewer")
    assert 'form="pick" formaction' not in viewer.get("/flags/").text
    assert save(viewer, "20").status_code == 403
    guarded(1)
    member = browse("member")
    assert "Send for review" in page_text(member.get(URL))
    save(member, "20", send_for_review="yes")
    assert stored()[1] == "50"
    [change] = ChangeRequest.objects.get().changes.all()
    assert change.payload["parameters"]["rollout"] == "20"
