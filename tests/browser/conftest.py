"""Pages in a real browser: a live server, people who are logged in, and a guard over every page opened.

Without Chromium these tests are skipped and say so; FLAGADMIN_BROWSER_TESTS=required makes that a failure.
"""

import os
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import connections
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, Request, expect

from groups.models import User
from groups.permissions import BuiltIn
from tests.browser.chromium import CHROMIUM, QUIET
from tests.support.cast import make_user
from tests.support.emptying import keep_rows
from tests.support.scenery import make_scenery
from tests.support.second_factor import just_logged_in

# pytest-playwright runs an event loop in this thread; the tests' own queries are not made from within it.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

PATIENCE = 60_000  # milliseconds; the machine may be busy
expect.set_options(timeout=PATIENCE)

# A refused page (403, 404) is logged as a failed resource; a request that a new page cuts short, by htmx as aborted.
NO_FAULTS = ("Failed to load resource", "htmx:sendAbort", "htmx:afterRequest")
# Contrast is measured on the colors a page comes to rest in, not on those half way to another theme.
SETTLED = (
    "Promise.all(document.getAnimations().map((each) => each.finished.catch(() => null))).then(() => null)"
)
# Without preloading: it writes styles into the page, which the policy refuses, and no rule here needs it.
# Only violations are described: describing what passed takes longer than finding it.
AXE_RULES = {
    "preload": False,
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}
# What is behind a modal dialog is inert, and an open menu or a message may cover a part of what it lies on: axe would call
# that small. What a message covers can be scrolled out from below it (test_messages.py).
RUN_AXE = """async (rules) => {
  const {violations, url} = await axe.run(document.querySelector("dialog:modal") ?? document, rules);
  const isCovered = (node) => document.querySelector("details.more[open], .toast") && node.failureSummary.includes("partially obscured");
  for (const violation of violations) violation.nodes = violation.nodes.filter((node) => !isCovered(node));
  return {violations: violations.filter(({nodes}) => nodes.length), url};
}"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.django_db(transaction=True))


@pytest.fixture(scope="session", autouse=True)
def _chromium() -> None:
    if CHROMIUM is None:
        reason = "Chromium is not installed, no page was looked at. `make browser` installs it."
        if os.environ.get("FLAGADMIN_BROWSER_TESTS") == "required":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict:
    return {"executable_path": CHROMIUM, "args": QUIET}


@pytest.fixture(scope="session")
def _connections_of_the_loop(playwright: Playwright) -> Iterator[None]:
    """While Playwright's event loop runs, Django has other connections in this thread than without; they end with it."""
    yield
    connections.close_all()


@cache
def _keep_scenery() -> Callable[[], None]:
    make_scenery()
    return keep_rows("scenery")


@pytest.fixture
def scenery(transactional_db: None) -> None:
    """Made once, then copied: only the superuser of the bundled server may copy."""
    if settings.DATABASE_URL:
        make_scenery()
    else:
        _keep_scenery()()


class Watch:
    """What a page must not do: ask another host, break the content security policy, log an error, answer 5xx."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.faults: list[str] = []
        self.requests: list[Request] = []

    def on(self, context: BrowserContext) -> None:
        context.on("request", self._request)
        context.on("console", self._console)
        context.on("weberror", lambda error: self.faults.append(f"script error: {error.error}"))
        context.on(
            "response", lambda r: self.faults.append(f"{r.status} {r.url}") if r.status >= 500 else None
        )

    def _request(self, request: Request) -> None:
        self.requests.append(request)
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https") and f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.faults.append(f"request to another host: {request.url}")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(NO_FAULTS):
            self.faults.append(f"console {message.type}: {message.text}")


@pytest.fixture
def watch(live_server) -> Iterator[Watch]:
    watch = Watch(live_server.url)
    yield watch
    assert not watch.faults, "\n".join(watch.faults)


@pytest.fixture
def visit(
    browser: Browser, live_server, watch: Watch, _connections_of_the_loop: None
) -> Iterator[Callable[..., Page]]:
    """``visit("admin", "/projects/", theme="dark", width=360, script=False)``: a page as that person sees it."""
    opened: list[BrowserContext] = []

    def open_page(
        who: str | None, address: str, *, theme: Any = "light", width: int = 1440, script: bool = True
    ) -> Page:
        context = browser.new_context(
            base_url=live_server.url, color_scheme=theme, java_script_enabled=script, reduced_motion="reduce",
            viewport={"width": width, "height": 900}, permissions=["clipboard-read", "clipboard-write"],
        )  # fmt: skip
        context.set_default_timeout(PATIENCE)
        opened.append(context)
        watch.on(context)
        if who is not None:
            log_in(context, person(who), live_server.url)
        page = context.new_page()
        page.goto(address)
        return page

    yield open_page
    for context in opened:
        context.close()
    answer_all(live_server.url)


def answer_all(origin: str) -> None:
    """Waits for the answers that closed pages no longer wait for: the database is emptied when nobody reads it."""
    urlopen(f"{origin}/healthz").close()  # what was asked before it has a thread by now
    for thread in threading.enumerate():
        if thread.name.endswith("(process_request_thread)"):
            thread.join(PATIENCE / 1000)


def person(name: str) -> User:
    """Somebody of this name: "admin", "editor" and "viewer" have that root role, others none."""
    roles = {"admin": BuiltIn.ADMIN, "editor": BuiltIn.EDITOR, "viewer": BuiltIn.VIEWER}
    return User.objects.filter(username=name).first() or make_user(name, root_role=roles.get(name))


def log_in(context: BrowserContext, user: User, origin: str) -> None:
    """A session without the login page, for the tests that are not about it."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    just_logged_in(session, user)
    session.create()
    context.add_cookies([{"name": "sessionid", "value": str(session.session_key), "url": origin}])


def make_narrow(page: Page, width: int = 360) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    expect(page.locator("html")).to_have_js_property("clientWidth", width)


def stop_clock(page: Page) -> None:
    """Time stands still on the page: what is there for a moment stays until ``page.clock.run_for`` passes it."""
    page.clock.install(time=0)
    page.clock.pause_at(
        3600
    )  # seconds; until then it runs, and it cannot be stopped at a time that has passed


@pytest.fixture
def check_accessible() -> Callable[[Page], None]:
    """Fails on any violation that axe finds on the page as it stands."""
    from axe_playwright_python.base import AXE_SCRIPT, AxeResults

    def check(page: Page) -> None:
        page.wait_for_load_state()
        page.evaluate(SETTLED)
        if not page.evaluate("'axe' in window"):
            page.evaluate(AXE_SCRIPT)
        results = AxeResults(page.evaluate(RUN_AXE, AXE_RULES))
        assert results.violations_count == 0, results.generate_report()

    return check


def fits(page, width=360):
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, f"{page.url} is {wide} px wide"
