"""After the right password, a login asks for the second factor."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from html import unescape

import pytest
from allauth.mfa.models import Authenticator
from django.db import connection
from django.test import Client
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.login.links import create_login_link
from groups.login.passwords import FREE_ATTEMPTS_OF_ACCOUNT
from groups.models import User
from tests.groups.second_factor.conftest import PASSWORD
from tests.support.second_factor import PERIOD, code_of

ASKED = "/login/code/"


def with_the_password(**form):
    browser = Client()
    answer = browser.post("/login/", {"username": "anna", "password": PASSWORD, **form})
    assert (answer.status_code, answer["Location"]) == (302, ASKED)
    return browser


def enter(browser, code):
    return browser.post(ASKED, {"code": code})


def is_in(browser):
    return browser.get("/account/").status_code == 200


def test_the_password_alone_does_not_log_in(anna):
    browser = with_the_password()

    assert not is_in(browser)
    assert browser.get("/api/admin/user").status_code == 401
    assert browser.get("/admin/")["Location"] == "/admin/login/?next=/admin/"
    assert browser.get("/admin/login/?next=/admin/")["Location"] == "/login/?next=/admin/"
    assert "authenticator app" in browser.get(ASKED).text
    assert not AuditEvent.objects.filter(type="user-logged-in").exists()


def test_the_code_logs_in_and_redirects(anna):
    browser = with_the_password(next="/activity/?x=1")
    answer = enter(browser, code_of())

    assert (answer.status_code, answer["Location"]) == (302, "/activity/?x=1")
    assert is_in(browser)
    assert browser.get("/admin/").status_code == 200
    event = AuditEvent.objects.get(type="user-logged-in")
    assert event.after == {"how": "password, authenticator app"}
    assert Authenticator.objects.get(type="totp").last_used_at == timezone.now()


@pytest.mark.parametrize("written", ["{} ", "{0[0]}{0[1]}{0[2]} {0[3]}{0[4]}{0[5]}"])
def test_blanks_in_a_code_do_not_matter(anna, written):
    assert enter(with_the_password(), written.format(code_of())).status_code == 302


@pytest.mark.parametrize("later", [-1, 1])
def test_codes_of_the_neighboring_periods_are_accepted(anna, later):
    assert enter(with_the_password(), code_of(later=later)).status_code == 302


@pytest.mark.parametrize("later", [-2, 2])
def test_codes_of_other_periods_are_refused(anna, later):
    assert enter(with_the_password(), code_of(later=later)).status_code == 401


@pytest.mark.parametrize("code", ["", "000000x", "٣٤٥٦٧٨", "x" * 101, "𝟙𝟚𝟛𝟜𝟝𝟞"])
def test_values_that_are_no_code_are_refused(anna, code):
    assert enter(with_the_password(), code).status_code in (400, 401)


def test_a_code_works_once(anna):
    code = code_of()
    assert enter(with_the_password(), code).status_code == 302

    again = enter(with_the_password(), code)

    assert again.status_code == 401
    assert "This code is wrong or has been used." in unescape(again.text)


def test_no_code_earlier_than_the_last_works(anna):
    assert enter(with_the_password(), code_of(later=1)).status_code == 302
    assert enter(with_the_password(), code_of()).status_code == 401


def test_the_next_code_works(anna, monkeypatch):
    assert enter(with_the_password(), code_of()).status_code == 302
    later = timezone.now() + timedelta(seconds=PERIOD)
    monkeypatch.setattr(timezone, "now", lambda: later)
    assert enter(with_the_password(), code_of()).status_code == 302


def test_a_recovery_code_works_once(anna):
    code = anna.recovery_codes[3]
    browser = with_the_password()
    answer = browser.post(ASKED, {"code": code}, follow=True)

    assert "You have used a recovery code. You have 9 left." in unescape(answer.text)
    assert AuditEvent.objects.get(type="user-logged-in").after == {"how": "password, recovery code"}
    assert enter(with_the_password(), code).status_code == 401
    assert enter(with_the_password(), anna.recovery_codes[4].replace("-", "")).status_code == 302


def test_a_wrong_code_is_refused_and_recorded(anna, caplog):
    answer = enter(with_the_password(), "000000")

    assert answer.status_code == 401
    assert "000000" not in answer.text.split("<form")[0]
    event = AuditEvent.objects.get(type="user-login-failed")
    assert (event.subject, event.after) == ("anna", {"address": "127.0.0.1", "wrong": "second factor"})
    assert "Login failed from 127.0.0.1: wrong second factor of anna" in caplog.messages


def test_guessing_is_throttled_and_the_password_does_not_reset_the_count(anna):
    for _ in range(FREE_ATTEMPTS_OF_ACCOUNT):
        assert enter(with_the_password(), "000000").status_code == 401

    answer = enter(with_the_password(), code_of())

    assert (answer.status_code, answer["Retry-After"]) == (429, "6")
    assert 'data-enable-after="6"' in answer.text
    recovery = enter(with_the_password(), anna.recovery_codes[0])
    assert recovery.status_code == 429


def test_a_right_code_resets_the_count(anna):
    for _ in range(FREE_ATTEMPTS_OF_ACCOUNT - 1):
        enter(with_the_password(), "000000")
    assert enter(with_the_password(), code_of()).status_code == 302
    for _ in range(FREE_ATTEMPTS_OF_ACCOUNT):
        assert enter(with_the_password(), "000000").status_code == 401


def test_without_the_password_the_code_page_redirects_to_the_login(anna):
    assert Client().get(ASKED)["Location"] == "/login/"
    assert enter(Client(), code_of())["Location"] == "/login/"


def test_whoever_is_logged_in_is_redirected(anna):
    browser = with_the_password()
    enter(browser, code_of())
    assert browser.get(ASKED)["Location"] == "/"


def test_a_one_time_link_asks_for_the_second_factor(anna):
    browser = Client()
    assert browser.post(create_login_link(anna, "/activity/"))["Location"] == ASKED
    assert not is_in(browser)
    assert enter(browser, code_of())["Location"] == "/activity/"
    assert AuditEvent.objects.get(type="user-logged-in").after == {"how": "link, authenticator app"}


def test_the_input_of_a_form_is_kept(anna, shop):
    page = "/projects/shop/features/new"
    browser = Client()
    response = browser.post(page, {"name": "one-click-pay", "type": "release"})
    entered = unescape(re.search('name="entered" value="([^"]*)"', response.text)[1])
    browser.post("/login/", {"username": "anna", "password": PASSWORD, "entered": entered, "next": page})
    assert "nothing was saved" not in browser.get(ASKED).text

    back = browser.post(ASKED, {"code": code_of()}, follow=True)

    assert back.redirect_chain[-1][0] == page
    assert "nothing was saved" in back.text
    assert 'value="one-click-pay"' in back.text


@pytest.mark.parametrize("what", ["disabled", "password changed", "deleted"])
def test_changes_of_the_account_before_the_code_end_the_login(anna, what):
    browser = with_the_password()
    if what == "deleted":
        User.objects.filter(pk=anna.pk).delete()
    elif what == "disabled":
        User.objects.filter(pk=anna.pk).update(is_active=False)
    else:
        anna.set_password("other horse battery")
        anna.save()

    enter(browser, code_of())

    assert not is_in(browser)
    assert not AuditEvent.objects.filter(type="user-logged-in").exists()


def test_removing_the_factor_before_the_code_ends_the_login(anna):
    browser = with_the_password()
    Authenticator.objects.all().delete()
    enter(browser, code_of())
    assert not is_in(browser)


def test_an_earlier_secret_key_still_reads_the_secret(anna, settings):
    earlier, settings.SECRET_KEY = settings.SECRET_KEY, "another key of this installation"
    settings.SECRET_KEY_FALLBACKS = [earlier]
    assert enter(with_the_password(), code_of()).status_code == 302
    settings.SECRET_KEY_FALLBACKS = []
    assert enter(with_the_password(), code_of(later=1)).status_code == 302  # encrypted with the new one since


def test_with_another_secret_key_no_code_is_right(anna, settings, caplog):
    settings.SECRET_KEY = "another key of this installation"
    assert enter(with_the_password(), code_of()).status_code == 401
    assert enter(with_the_password(), anna.recovery_codes[0]).status_code == 401
    assert "SECRET_KEY has changed" in caplog.text


def test_nothing_is_stored_in_the_clear(anna):
    from tests.support.second_factor import SECRET

    stored = repr(list(Authenticator.objects.values()))
    assert SECRET not in stored
    assert not any(code in stored or code.replace("-", "") in stored for code in anna.recovery_codes)


@pytest.mark.django_db(transaction=True)
def test_a_code_sent_often_at_once_is_accepted_once(anna):
    browsers, code = [with_the_password() for _ in range(4)], code_of()

    def one(browser):
        try:
            return enter(browser, code).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(one, browsers)) == [302, 401, 401, 401]
