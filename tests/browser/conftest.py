"""Pages in a real browser: a live server, people who are logged in, and a guard over every page opened.

Without Chromium these tests are skipped and say so; FLAGADMIN_BROWSER_TESTS=required makes that a failure.
"""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen
from weakref import WeakSet

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import connections
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, Request, expect

from groups.models import User
from groups.permissions import BuiltIn
from tests.browser.accessibility import find_violations
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
# An observer's records are gone once it has been called: takeRecords() alone would lose all but the last.
_SHIFTS = """() => new Promise((done) => {
    const found = [];
    const note = (records) => found.push(...records.map((each) => [each.value, ...each.sources.map(({node}) =>
        node?.outerHTML?.slice(0, 120) ?? node?.parentElement?.outerHTML?.slice(0, 120))]));
    const seen = new PerformanceObserver((list) => note(list.getEntries()));
    seen.observe({type: "layout-shift", buffered: true});
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => {
        note(seen.takeRecords());
        done(found);
    }, 100)));
})"""


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
        self.handlers: dict[Any, Callable[[Any], None]] = {
            "request": self._request,
            "console": self._console,
            "weberror": lambda error: self.faults.append(f"script error: {error.error.stack}"),
            "response": lambda r: self.faults.append(f"{r.status} {r.url}") if r.status >= 500 else None,
        }

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


# A context whose clock was stopped keeps that clock: no other test gets it.
_with_own_clock: WeakSet[BrowserContext] = WeakSet()


class Contexts:
    """Contexts of one browser, which one test takes after the other: a new one would load all files again."""

    def __init__(self, browser: Browser, origin: str) -> None:
        self.browser, self.origin = browser, origin
        self.idle: list[BrowserContext] = []

    def take(self, watch: Watch, **options: Any) -> BrowserContext:
        is_new = options or not self.idle
        context = self._make(**options) if is_new else self.idle.pop()
        for event, handler in watch.handlers.items():
            context.on(event, handler)
        return context

    def _make(self, **options: Any) -> BrowserContext:
        context = self.browser.new_context(
            base_url=self.origin, reduced_motion="reduce", permissions=["clipboard-read", "clipboard-write"], **options
        )  # fmt: skip
        context.set_default_timeout(PATIENCE)
        return context

    def give_back(self, context: BrowserContext, watch: Watch, *, closing: bool) -> None:
        for event, handler in watch.handlers.items():
            context.remove_listener(event, handler)
        if closing or context in _with_own_clock:
            context.close()
            return
        stored = {"origin": self.origin, "storageTypes": "local_storage"}
        context.new_cdp_session(context.pages[0]).send("Storage.clearDataForOrigin", stored)
        for page in context.pages:
            page.close()
        context.clear_cookies()
        self.idle.append(context)


# What the server has accepted: the browser keeps a connection of an idle context open.
_connections: WeakSet[socket.socket] = WeakSet()


@pytest.fixture(scope="session")
def contexts(browser: Browser, live_server: Any, _connections_of_the_loop: None) -> Contexts:
    server = live_server.thread.httpd
    process = server.process_request

    def note(connection: socket.socket, address: Any) -> None:
        _connections.add(connection)
        process(connection, address)

    server.process_request = note
    return Contexts(browser, live_server.url)


@pytest.fixture
def visit(contexts: Contexts, watch: Watch) -> Iterator[Callable[..., Page]]:
    """``visit("admin", "/projects/", theme="dark", width=360, script=False)``: a page as that person sees it."""
    opened: dict[BrowserContext, bool] = {}

    def open_page(
        who: str | None, address: str, *, theme: Any = "light", width: int = 1440, script: bool = True
    ) -> Page:
        context = contexts.take(watch, **({} if script else {"java_script_enabled": False}))
        opened[context] = not script
        if who is not None:
            log_in(context, person(who), contexts.origin)
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)
        page.goto(address)
        return page

    yield open_page
    for context, closing in opened.items():
        contexts.give_back(context, watch, closing=closing)
    answer_all(contexts.origin)


def answer_all(origin: str) -> None:
    """Waits for the answers that closed pages no longer wait for: the database is emptied when nobody reads it."""
    urlopen(f"{origin}/healthz").close()  # what was asked before it has a thread by now
    for connection in list(_connections):
        with suppress(OSError):  # it is closed already
            connection.shutdown(
                socket.SHUT_RD
            )  # its thread ends after the answer, and waits for no other request
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
    _with_own_clock.add(page.context)
    page.clock.install(time=0)
    page.clock.pause_at(
        3600
    )  # seconds; until then it runs, and it cannot be stopped at a time that has passed


@pytest.fixture
def check_accessible() -> Callable[[Page], None]:
    """Fails on any violation that axe finds on the page as it stands."""

    def check(page: Page) -> None:
        found = find_violations(page)
        assert not found, f"{page.url}: {found}"

    return check


@pytest.fixture
def check_in_both_themes(check_accessible: Callable[[Page], None]) -> Callable[[Page], None]:
    """Fails on any violation in the light or the dark theme."""

    def check(page: Page) -> None:
        check_accessible(page)
        page.emulate_media(color_scheme="dark")
        found = find_violations(page, again=True)
        assert not found, f"{page.url}: {found}"
        page.emulate_media(color_scheme="light")

    return check


def fits(page, width=360):
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, f"{page.url} is {wide} px wide"


def find_shifts(page: Page) -> list[Any]:
    """What moved on the page since it was opened: the score and elements of each layout shift.

    Empty up to a sum of 0.1, which users are said not to notice.
    """
    found: list[Any] = page.evaluate(_SHIFTS)
    return found if sum(score for score, *_ in found) >= 0.1 else []
