"""Every console URL requires a login, and every change requires a CSRF token."""

from functools import cache

import pytest
from django.conf import settings
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from tests.flagadmin.security.batches import undone
from tests.flagadmin.security.routes import OPEN, pages, routes
from tests.flagadmin.security.world import address

pytestmark = pytest.mark.exhaustive

# What a viewer's empty form may do: it concerns the viewer alone.
OWN = {
    "/account/log-out-everywhere/",
    "/account/sessions/end-others",
    "/calendar/",
    "/projects/<str:project_id>/favorite",
}


@pytest.fixture
def browse(people):
    """A new browser each time, with the one session of that person: logging in takes as long as a page."""

    @cache
    def session(name):
        browser = Client()
        browser.force_login(people[name])
        return browser.cookies[settings.SESSION_COOKIE_NAME].value

    def browser(name, **options):
        made = Client(raise_request_exception=False, **options)
        made.cookies[settings.SESSION_COOKIE_NAME] = session(name)
        return made

    return browser


def sent(browser, method, route, world):
    with undone():
        return getattr(browser, method)(address(route, world))


def test_the_walk_sees_the_console():
    seen = {str(route) for route in pages()}
    assert {"/", "/playground/", "/account/", "/activity/"} <= seen
    assert {str(route) for route in routes("")} >= OPEN | OWN


def test_without_a_login_or_a_form_without_its_token(browse, world):
    browser = browse("admin", enforce_csrf_checks=True)
    for route in pages():
        for method in ("get", "post", "head"):
            response = sent(Client(), method, route, world)
            assert response.status_code == 302, (method, route)
            assert response["Location"].startswith("/login/?next="), (method, route)
        if "post" in route.methods:
            assert sent(browser, "post", route, world).status_code == 403, route


@pytest.mark.parametrize("name", ["viewer", "outsider"])
def test_a_form_of_somebody_without_rights_changes_nothing(browse, world, name):
    for route in pages():
        if "post" in route.methods and str(route) not in OWN:
            browser = browse(name)
            with undone():
                response = browser.post(address(route, world))
                changed = AuditEvent.objects.exclude(pk=world["event"]).values_list("type", flat=True)
                assert not list(changed), route
                assert response.status_code < 500, route


def test_pages_hide_a_project_from_an_outsider_and_keep_to_the_policy(browse, world):
    for route in pages():
        if "get" in route.methods:
            page = sent(browse("outsider"), "get", route, world)
            content = b"".join(page) if page.streaming else page.content
            assert "project_id" not in route.names or page.status_code in (404, 405), route
            assert page.status_code != 200 or not any(name in content for name in (b"shop", b"checkout")), (
                route
            )
            response = sent(browse("admin"), "get", route, world)
            assert response.status_code < 500, route
            assert response["Content-Security-Policy"].startswith("default-src 'self'"), route
            assert response["X-Frame-Options"] == "DENY", route
