"""What allauth does at a login, and that nobody sees its pages."""

from collections.abc import Iterable, Iterator

import pytest
from allauth.usersessions.models import UserSession
from django.template import TemplateDoesNotExist
from django.template.loader import get_template
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from groups.permissions import BuiltIn
from tests.support.cast import make_user

PASSWORD = "correct horse battery"


@pytest.fixture
def anna(db):
    return make_user("anna", root_role=BuiltIn.VIEWER, password=PASSWORD)


def views(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from views(pattern.url_patterns)
        else:
            yield pattern.lookup_str


def test_no_page_of_allauth_is_routed():
    routed = list(views(get_resolver().url_patterns))
    assert len(routed) > 100
    assert [view for view in routed if view.startswith("allauth.")] == []


@pytest.mark.parametrize("name", ["account/login.html", "allauth/layouts/base.html", "mfa/index.html"])
def test_no_template_of_allauth_is_found(name):
    with pytest.raises(TemplateDoesNotExist):
        get_template(name)


@pytest.mark.parametrize(
    ("address", "stored"),
    [
        ("203.0.113.5", "203.0.113.5"),
        ("fe80::1%eth0", "fe80::1"),
        ("not an address", "0.0.0.0"),
        ("", "0.0.0.0"),
    ],
)
def test_a_login_is_among_the_sessions_of_the_account(anna, address, stored):
    browser = Client(REMOTE_ADDR=address, HTTP_USER_AGENT="Netscape")
    assert browser.post("/login/", {"username": "anna", "password": PASSWORD}).status_code == 302
    session = UserSession.objects.get(user=anna)
    assert (session.ip, session.user_agent) == (stored, "Netscape")
    assert session.session_key == browser.session.session_key


def test_a_request_takes_no_query_more(anna, django_assert_num_queries):
    browser = Client()
    browser.post("/login/", {"username": "anna", "password": PASSWORD})
    browser.get("/account/")
    with django_assert_num_queries(2):  # session and user
        browser.get("/login/")
