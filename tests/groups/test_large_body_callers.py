"""Large request bodies are accepted only from callers with a valid token or session."""

import pytest
from django.test import Client, RequestFactory

from flagadmin.core.errors import AuthenticationRequired
from groups.authentication import check_known
from groups.models import User
from tests.support.cast import make_token, make_user

pytestmark = pytest.mark.django_db


def with_key(secret: str, header: str = "Authorization") -> None:
    check_known(RequestFactory().post("/", headers={header: secret}).environ)


def with_session_of(user: User) -> None:
    browser = Client()
    browser.force_login(user)
    cookie = f"sessionid={browser.cookies['sessionid'].value}"
    check_known(RequestFactory().post("/", headers={"Cookie": cookie}).environ)


@pytest.mark.parametrize("header", ["Authorization", "X-API-Key"])
@pytest.mark.parametrize("kind", ["backend", "frontend"])
def test_a_token_may_send_a_large_body(kind: str, header: str) -> None:
    with_key(make_token(kind, environment="production"), header)


def test_a_session_may_send_a_large_body() -> None:
    with_session_of(make_user("maria"))


def test_anonymous_callers_may_not_send_a_large_body() -> None:
    with pytest.raises(AuthenticationRequired):
        check_known(RequestFactory().post("/").environ)


def test_an_unknown_token_may_not_send_a_large_body() -> None:
    with pytest.raises(AuthenticationRequired):
        with_key("*:production.nosuch")


def test_an_unknown_session_may_not_send_a_large_body() -> None:
    with pytest.raises(AuthenticationRequired):
        check_known(RequestFactory().post("/", headers={"Cookie": "sessionid=nosuch"}).environ)


def test_the_session_of_a_disabled_account_may_not_send_a_large_body() -> None:
    with pytest.raises(AuthenticationRequired):
        with_session_of(make_user("former", is_active=False))
