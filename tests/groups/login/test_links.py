"""One-time links for logging in and for creating the first account."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from groups.login.links import create_login_link, create_setup_link
from groups.models import LoginLink, User
from groups.periodic_tasks import offer_setup_link
from groups.permissions import BuiltIn
from tests.support.cast import make_user

BY_HAND = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
SETUP = {"username": "anna", "password": "correct horse battery"}


@pytest.fixture
def anna(db):
    return make_user("anna", root_role=BuiltIn.ADMIN)


def is_in(client):
    return client.get("/").status_code == 200


def test_a_link_opened_by_hand_logs_in_and_redirects(client, anna):
    response = client.get(create_login_link(anna, "/activity/?x=1"), headers=BY_HAND)
    assert (response.status_code, response["Location"]) == (302, "/activity/?x=1")
    assert is_in(client)
    assert AuditEvent.objects.get(type="user-logged-in").after == {"how": "link"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        BY_HAND | {"Sec-Fetch-Site": "cross-site"},
        BY_HAND | {"Sec-Fetch-Site": "same-origin"},
        BY_HAND | {"Sec-Purpose": "prefetch"},
        BY_HAND | {"Sec-Fetch-Dest": "image"},
    ],
)
def test_a_link_opened_otherwise_asks_for_a_click(client, anna, headers):
    link = create_login_link(anna)
    response = client.get(link, headers=headers)
    assert response.status_code == 200
    assert "Log in as anna" in response.text
    assert not is_in(client)
    assert client.post(link).status_code == 302
    assert is_in(client)


def test_head_does_not_use_a_link_up(client, anna):
    link = create_login_link(anna)
    client.head(link, headers=BY_HAND)
    assert client.get(link, headers=BY_HAND).status_code == 302


def test_a_link_works_once(client, anna):
    link = create_login_link(anna)
    client.post(link)
    for again in (Client().get(link, headers=BY_HAND), Client().post(link)):
        assert again.status_code == 404
        assert "This link has already been used" in again.text


def test_a_link_expires(client, anna):
    link = create_login_link(anna, lifetime=timedelta(seconds=-1))
    assert client.get(link, headers=BY_HAND).status_code == 404


def test_an_unknown_link_is_404(client, db):
    assert client.get("/login/link/nonsense/", headers=BY_HAND).status_code == 404


def test_a_link_of_a_disabled_account_is_404(client, anna):
    link = create_login_link(anna)
    User.objects.update(is_active=False)
    assert client.get(link, headers=BY_HAND).status_code == 404


def test_a_link_never_redirects_to_another_site(client, anna):
    link = create_login_link(anna, "https://evil.example/")
    assert client.post(link)["Location"] == "/"


def test_only_the_hash_of_a_link_is_stored(client, anna):
    token = create_login_link(anna).split("/")[3]
    assert token not in repr(list(LoginLink.objects.values()))


def test_a_click_needs_the_csrf_token(anna):
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(create_login_link(anna)).status_code == 403


def test_the_setup_link_creates_the_first_account(client, db):
    link = create_setup_link()
    assert "Create the first account" in client.get(link, headers=BY_HAND).text
    response = client.post(link, SETUP)
    assert response.status_code == 302
    user = User.objects.get()
    assert (user.username, user.root_role_id, user.check_password(SETUP["password"])) == ("anna", 1, True)
    assert is_in(client)
    types = list(AuditEvent.objects.order_by("id").values_list("type", flat=True))
    assert types == ["user-created", "user-logged-in"]


def test_the_first_account_needs_a_good_password(client, db):
    link = create_setup_link()
    response = client.post(link, {"username": "anna", "password": "123456"})
    assert response.status_code == 400
    for problem in ("too short", "too common", "entirely numeric"):
        assert problem in response.text
    assert client.post(link, SETUP).status_code == 302


def test_the_setup_link_creates_no_second_account(client, db):
    link = create_setup_link()
    make_user("bertha")
    assert client.get(link).status_code == 404
    assert client.post(link, SETUP).status_code == 404
    assert create_setup_link() is None


def test_service_accounts_do_not_count_as_accounts_that_log_in(db):
    make_user("robot", is_service=True)
    assert create_setup_link()


def test_the_newest_setup_link_counts(client, db):
    older, newer = create_setup_link(), create_setup_link()
    assert client.get(older).status_code == 404
    assert client.get(newer).status_code == 200


def test_the_log_has_the_setup_link_while_there_is_no_account(db, caplog):
    offer_setup_link()
    assert "/login/link/" in caplog.text
    caplog.clear()
    make_user("anna")
    offer_setup_link()
    assert not caplog.text


@pytest.mark.django_db(transaction=True)
def test_of_many_uses_at_once_one_logs_in():
    link = create_setup_link()

    def one(number):
        try:
            return Client().post(link, SETUP | {"username": f"anna{number}"}).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        statuses = list(pool.map(one, range(6)))
    assert sorted(statuses) == [302, 404, 404, 404, 404, 404]
    assert User.objects.count() == 1


def test_the_login_page_explains_the_setup_while_there_is_no_account(client, db):
    assert "No account exists yet." in client.get("/login/").text
    client.post(create_setup_link(), SETUP)
    client.logout()
    assert "No account exists yet." not in client.get("/login/").text
