"""OpenFeature's own SDK and OFREP provider for browsers get their flags from here, on a page of another origin."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from projects.models import FlagEnvironment
from tests.browser.conftest import answer_all
from tests.support.cast import make_token
from tests.support.openfeature import ABROAD, ASKED, USER, ask, example, make_flags, other_origin

BULK = "/ofrep/v1/evaluate/flags"


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with other_origin() as url:
        yield url


@pytest.fixture
def page(browser: Browser, live_server: Any, origin: str, _connections_of_the_loop: None) -> Iterator[Page]:
    make_flags()
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{origin}/page.html")
    page.wait_for_function("window.loaded")
    yield page
    context.close()
    answer_all(live_server.url)


def token(kind: str = "frontend") -> str:
    return make_token(kind, projects=["default"], environment="development")


def start(page: Page, url: str, secret: str, **options: Any) -> str:
    """Starts the provider for USER. Returns the error that the application gets, "" if none.

    It keeps nothing in the browser: what was kept is given first, whatever the server says.
    """
    headers = [["Authorization", f"Bearer {secret}"]]
    given = {"baseUrl": url, "headers": headers, "cacheMode": "disabled"} | options
    return page.evaluate("([options, context]) => start(options, context)", [given, USER])


def test_what_applications_get(page: Page, live_server: Any) -> None:
    assert start(page, live_server.url, token()) == ""
    for asked in ASKED:
        found = page.evaluate("(asked) => ask(asked)", asked._asdict())
        got = found["value"], found["reason"], found.get("variant"), found.get("errorCode")
        assert got == asked[4:], found
        if not asked.error:
            assert found["flagMetadata"]["why"]


def test_polling(page: Page, live_server: Any) -> None:
    """304 while nothing changes; a change reaches the application."""
    statuses: list[int] = []
    page.on("response", lambda r: statuses.append(r.status) if r.request.method == "POST" else None)
    with page.expect_response(lambda r: r.url.endswith(BULK) and r.status == 304):
        assert start(page, live_server.url, token(), pollInterval=100, changeDetection="polling") == ""
    assert statuses[0] == 200
    assert set(statuses[1:]) <= {304}
    assert page.evaluate("changes") == []
    FlagEnvironment.objects.filter(flag__name="on", environment="development").update(enabled=False)
    page.wait_for_function("changes.length")
    assert page.evaluate("changes") == ["on"]
    asked = ask("boolean", "on")._asdict() | {"context": USER}
    assert page.evaluate("(asked) => ask(asked)", asked)["reason"] == "DISABLED"


def test_another_user_gets_other_flags(page: Page, live_server: Any) -> None:
    start(page, live_server.url, token())
    norway = ask("boolean", "norway")._asdict()
    values = [
        page.evaluate("(asked) => ask(asked)", norway | {"context": context})["value"]
        for context in (USER, ABROAD, USER)
    ]
    assert values == [True, False, True]


def test_what_the_provider_keeps_is_replaced(page: Page, live_server: Any) -> None:
    """It keeps flags by targeting key alone, and sends their ETag with another context."""
    start(page, live_server.url, token(), cacheMode="local-cache-first")
    norway = ask("boolean", "norway")._asdict()
    assert page.evaluate("(asked) => ask(asked)", norway)["value"]
    page.evaluate("(asked) => ask(asked)", norway | {"context": ABROAD})
    page.wait_for_function("changes.includes('norway')")
    page.wait_for_function(
        "(asked) => ask(asked).then((found) => !found.value)", arg=norway | {"context": ABROAD}
    )


@pytest.mark.parametrize(("kind", "status"), [("", 401), ("admin", 403)])
def test_tokens_that_are_refused(page: Page, live_server: Any, kind: str, status: int) -> None:
    secret = make_token(kind) if kind else "*:development.wrong"
    with page.expect_response(lambda r: r.url.endswith(BULK) and r.request.method == "POST") as answer:
        assert (
            start(page, live_server.url, secret) == "Initialization failed"
        )  # the page may read the refusal
    assert (answer.value.status, answer.value.json()["errorCode"]) == (status, "GENERAL")
    found = page.evaluate("(asked) => ask(asked)", ask("boolean", "on")._asdict())
    assert (found["value"], found["reason"]) == (False, "ERROR")


def test_a_backend_token_is_of_no_use_to_pages(page: Page, live_server: Any) -> None:
    """It is answered without leave for other origins, so the browser hands nothing over."""
    assert start(page, live_server.url, token("backend")) == "The OFREP request failed."


def test_the_example(page: Page, live_server: Any) -> None:
    with page.expect_console_message() as said:
        program = example("javascript", live_server.url, token())
        page.add_script_tag(type="module", content=program)
    assert said.value.text == "true SPLIT A percentage or the weights of variants decided"
