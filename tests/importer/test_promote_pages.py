"""Promoting in the console: from the comparison to the preview, the confirmation and the undoing."""

from typing import Any

import pytest

from importer.models import ImportRun
from projects.models import FlagEnvironment, Strategy
from tests.importer.console import confirm
from tests.support.flags import make_flag
from tests.support.page_text import page_text

pytestmark = pytest.mark.django_db
ROLLOUT = {
    "name": "flexibleRollout",
    "parameters": {"rollout": "10", "stickiness": "default", "groupId": "g"},
}


@pytest.fixture
def flags(shop: Any) -> None:
    for name in ("cart", "search"):
        make_flag(name, enabled=True, strategies=[ROLLOUT])
    make_flag("same")


def promote(browser: Any, *names: str, **more: Any) -> Any:
    sent = {"from": "development", "to": "production", "name": names, **more}
    return browser.post("/projects/shop/promote", sent)


def in_production() -> set[str]:
    return set(Strategy.objects.filter(environment="production").values_list("flag__name", flat=True))


def test_parts_are_chosen_on_the_preview(flags: Any, browse: Any) -> None:
    browser = browse("member")
    address = promote(browser, "cart")["Location"]
    browser.post(address, {"do": "copy", "toggle": "enabled"})
    assert "Stays off" not in page_text(browser.get(address))
    browser.post(address, {"do": "copy", "toggle": "strategies"})
    browser.post(address, {"do": "copy", "toggle": "variants"})
    confirm(browser, address)
    place = FlagEnvironment.objects.get(flag__name="cart", environment="production")
    strategy = Strategy.objects.get(flag__name="cart", environment="production")
    assert place.enabled
    assert strategy.parameters["rollout"] == "100"  # the default strategy


@pytest.mark.parametrize("toggle", ["tags", ""])
def test_other_parts_are_refused(flags: Any, browse: Any, toggle: str) -> None:
    browser = browse("member")
    address = promote(browser, "cart")["Location"]
    answer = browser.post(address, {"do": "copy", "toggle": toggle}, follow=True)
    assert "must be strategies, variants or enabled" in page_text(answer)


def test_all_that_a_list_shows_on_all_its_pages(flags: Any, browse: Any) -> None:
    browser = browse("member")
    promote(browser, matching="q=c")
    assert ImportRun.objects.get().reports.count() == 2  # cart and search
    ImportRun.objects.all().delete()
    promote(browser, matching="show=same")
    assert list(ImportRun.objects.get().reports.values_list("name", flat=True)) == ["same"]


def test_a_preview_of_what_has_changed_is_not_confirmed(flags: Any, browse: Any) -> None:
    browser = browse("member")
    address = promote(browser, "cart")["Location"]
    before = browser.get(address)
    Strategy.objects.filter(flag__name="cart").update(parameters=ROLLOUT["parameters"] | {"rollout": "90"})
    answer = confirm(browser, address)
    assert answer.status_code == 409
    assert "Nothing was promoted." in page_text(answer)
    assert "90 %" in page_text(answer)
    assert "90 %" not in page_text(before)
    assert in_production() == set()


def test_pages_of_the_preview(flags: Any, browse: Any) -> None:
    browser = browse("member")
    address = promote(browser, "cart")["Location"]
    assert "now and after the promotion" in page_text(browser.get(f"{address}who-changes/"))
    assert "now and after the promotion" in page_text(browser.get(f"{address}evaluate/"))
    assert "promoted from development" in page_text(browser.get("/imports/"))


@pytest.mark.parametrize(
    "more",
    [{"from": "moon"}, {"to": "development"}, {"name": []}, {"from": ""}, {"matching": "in=none"}],
)
def test_what_cannot_be_promoted_is_refused(flags: Any, browse: Any, more: Any) -> None:
    assert promote(browse("member"), "cart", **more).status_code == 400
    assert not ImportRun.objects.exists()


def test_a_reader_may_look_and_not_promote(flags: Any, browse: Any) -> None:
    browser = browse("reader")
    address = promote(browser, "cart")["Location"]
    assert "You need" in page_text(browser.get(address))
    assert confirm(browser, address).status_code == 403
    assert in_production() == set()
