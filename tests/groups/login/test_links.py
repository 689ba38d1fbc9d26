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


def test_opened_by_hand_it_logs_in_and_leads_on(client, anna):
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
def test_otherwise_it_takes_a_click(client, anna, headers):
    link = create_login_link(anna)
    response = client.get(link, headers=headers)
    assert response.status_code == 200
    assert "Log in as anna" in response.text
    assert not is_in(client)
    assert client.post(link).status_code == 302
    assert is_in(client)


def test_head_uses_nothing_up(client, anna):
    link = create_login_link(anna)
    client.head(link, headers=BY_HAND)
    assert client.get(link, headers=BY_HAND).status_code == 302


def test_only_once(client, anna):
    link = create_login_link(anna)
    client.post(link)
    for again in (Client().get(link, headers=BY_HAND), Client().post(link)):
        assert again.status_code == 404
        assert "This link has already been used" in again.text


def test_not_for_long(client, anna):
    link = create_login_link(anna, lifetime=timedelta(seconds=-1))
    assert client.get(link, headers=BY_HAND).status_code == 404


def test_unknown(client, db):
    assert client.get("/login/link/nonsense/", headers=BY_HAND).status_code == 404


def test_a_disabled_person(client, anna):
    link = create_login_link(anna)
    User.objects.update(is_active=False)
    assert client.get(link, headers=BY_HAND).status_code == 404


def test_it_never_leads_to_another_site(client, anna):
    link = create_login_link(anna, "https://evil.example/")
    assert client.post(link)["Location"] == "/"


def test_only_its_hash_is_kept(client, anna):
    token = create_login_link(anna).split("/")[3]
    assert token not in repr(list(LoginLink.objects.values()))


def test_a_click_needs_the_form(anna):
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(create_login_link(anna)).status_code == 403


def test_the_first_account(client, db):
    link = create_setup_link()
    assert "Create the first account" in client.get(link, headers=BY_HAND).text
    response = client.post(link, SETUP)
    assert response.status_code == 302
    user = User.objects.get()
    assert (user.username, user.root_role_id, user.check_password(SETUP["password"])) == ("anna", 1, True)
    assert is_in(client)
    types = list(AuditEvent.objects.order_by("id").values_list("type", flat=True))
    assert types == ["user-created", "user-logged-in"]


def test_the_first_account_needs_a_fair_password(client, db):
    link = create_setup_link()
    response = client.post(link, {"username": "anna", "password": "123456"})
    assert response.status_code == 400
    for problem in ("too short", "too common", "entirely numeric"):
        assert problem in response.text
    assert client.post(link, SETUP).status_code == 302


def test_no_second_first_account(client, db):
    link = create_setup_link()
    make_user("bertha")
    assert client.get(link).status_code == 404
    assert client.post(link, SETUP).status_code == 404
    assert create_setup_link() is None


def test_a_service_account_is_nobody_who_could_log_in(db):
    make_user("robot", is_service=True)
    assert create_setup_link()


def test_the_newest_setup_link_counts(client, db):
    older, newer = create_setup_link(), create_setup_link()
    assert client.get(older).status_code == 404
    assert client.get(newer).status_code == 200


def test_it_stands_in_the_log_while_there_is_nobody(db, caplog):
    offer_setup_link()
    assert "/login/link/" in caplog.text
    caplog.clear()
    make_user("anna")
    offer_setup_link()
    assert not caplog.text


@pytest.mark.django_db(transaction=True)
def test_used_by_many_at_once():
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


def test_the_login_page_says_how_to_begin_while_there_is_nobody(client, db):
    assert "No account exists yet." in client.get("/login/").text
    client.post(create_setup_link(), SETUP)
    client.logout()
    assert "No account exists yet." not in client.get("/login/").text
