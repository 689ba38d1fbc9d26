"""OpenFeature's provider for browsers listens to a real server instead of polling."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Page

from tests.support.openfeature import USER, other_origin
from tests.support.served import Served

BULK = "/ofrep/v1/evaluate/flags"
FLAG = "projects/default/features/told"
ON = {"type": "boolean", "key": "told", "default": False, "context": USER}


@pytest.fixture
def served(served: Served) -> Served:
    served.flag("told")
    return served


def make_token(served: Served) -> str:
    return served.token("default", tokenName="web", type="frontend")


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with other_origin() as origin, closing(browser.new_context()) as context:
        page = context.new_page()
        page.goto(f"{origin}/page.html")
        page.wait_for_function("window.loaded")
        yield page


def test_a_change_reaches_the_page_without_polling(page: Page, served: Served) -> None:
    served.switch("told", "off")
    headers = [["Authorization", f"Bearer {make_token(served)}"]]
    options = {"baseUrl": served.url, "headers": headers, "cacheMode": "disabled"}
    # It asks once more when the stream is open, for what changed meanwhile.
    with page.expect_response(lambda r: r.url.startswith(served.url + BULK) and r.status == 304):
        assert page.evaluate("([options, context]) => start(options, context)", [options, USER]) == ""
    assert page.evaluate("(asked) => ask(asked)", ON)["value"] is False
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.method))
    served.switch("told", "on")
    page.wait_for_function("changes.includes('told')")
    assert page.evaluate("(asked) => ask(asked)", ON)["value"] is True
    assert "GET" not in asked  # the stream was not opened again
