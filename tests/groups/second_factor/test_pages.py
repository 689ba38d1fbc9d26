"""/account/two-step/: setting up an authenticator app, recovery codes, and removing factors."""

import re

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from groups.login.passwords import FREE_ATTEMPTS_OF_ACCOUNT
from tests.groups.second_factor.conftest import PASSWORD
from tests.support.page_text import page_text
from tests.support.second_factor import code_of

APP = "/account/two-step/app/"
CODES = "/account/two-step/recovery-codes/"


def logged_in(user, *, code=""):
    browser = Client()
    browser.post("/login/", {"username": user.username, "password": PASSWORD})
    if code:
        assert browser.post("/login/code/", {"code": code}).status_code == 302
    return browser


def much_later(browser):
    """The confirmation of the login is over."""
    session = browser.session
    for record in session["account_authentication_methods"]:
        record["at"] -= 601
    session.save()


def key_of(page):
    return re.search(r"enter this key: <code>([A-Z2-7 ]+)</code>", page.text)[1].replace(" ", "")


def setup_of(page):
    return re.search(r'name="setup" value="([^"]+)"', page.text)[1]


def events():
    events = AuditEvent.objects.exclude(type__startswith="user-log").order_by("id")
    return [(event.type, event.before or event.after) for event in events]


def test_an_app_is_set_up(bert):
    browser = logged_in(bert)
    assert "You log in with your password alone." in browser.get("/account/").text
    page = browser.get(APP)
    assert "data:image/svg+xml;base64," in page.text
    assert "otpauth://totp/bert?secret=" in page.text
    secret = key_of(page)
    assert len(secret) == 32

    response = browser.post(APP, {"setup": setup_of(page), "code": code_of(secret)}, follow=True)

    codes = re.findall(r"\d{4}-\d{4}", re.search('id="secret">([^<]+)<', response.text)[1])
    assert len(set(codes)) == 10
    assert "no-store" in response["Cache-Control"]
    assert codes[0] not in browser.get(response.redirect_chain[-1][0], follow=True).text  # once
    assert "10 left" in browser.get("/account/two-step/").text
    assert events() == [
        ("user-second-factor-added", {"factors": ["authenticator app"]}),
        ("user-recovery-codes-created", {"count": 10}),
    ]
    stored = repr(list(AuditEvent.objects.values())) + repr(list(Authenticator.objects.values()))
    assert secret not in stored
    assert Client().post("/login/", {"username": "bert", "password": PASSWORD})["Location"] == "/login/code/"
    # The code that set the app up is used up.
    with_password = logged_in(bert)
    assert with_password.post("/login/code/", {"code": code_of(secret)}).status_code == 401
    assert with_password.post("/login/code/", {"code": code_of(secret, later=1)}).status_code == 302


def test_a_wrong_code_sets_nothing_up_and_keeps_the_key(bert):
    browser = logged_in(bert)
    page = browser.get(APP)
    browser.get(APP)  # another tab

    wrong = browser.post(APP, {"setup": setup_of(page), "code": "000000"})

    assert wrong.status_code == 400
    assert key_of(wrong) == key_of(page)
    assert not Authenticator.objects.exists()
    response = browser.post(APP, {"setup": setup_of(wrong), "code": code_of(key_of(page))})
    assert response.status_code == 302


@pytest.mark.parametrize("setup", ["", "x", "theirs"])
def test_a_key_of_somebody_else_is_refused(bert, anna, setup):
    if setup == "theirs":
        setup = setup_of(logged_in(bert).get(APP))
    browser = logged_in(anna, code=code_of())
    Authenticator.objects.all().delete()

    answer = browser.post(APP, {"setup": setup, "code": code_of()})

    assert answer.status_code == 400
    assert not Authenticator.objects.exists()


def test_a_second_app_is_refused(anna):
    browser = logged_in(anna, code=code_of())
    page = browser.get(APP)
    answer = browser.post(APP, {"setup": setup_of(page), "code": code_of(key_of(page))})

    assert answer.status_code == 403
    assert "Remove it first." in answer.text


def test_new_recovery_codes_replace_the_old(anna):
    browser = logged_in(anna, code=code_of())
    assert "your recovery codes, of which 10 are left" in page_text(browser.get(CODES))

    codes_page = browser.post(CODES, follow=True)

    codes = sorted(set(re.findall(r"\d{4}-\d{4}", codes_page.text)))
    assert len(codes) == 10
    assert not set(codes) & set(anna.recovery_codes)
    waiting = logged_in(anna)
    assert waiting.post("/login/code/", {"code": anna.recovery_codes[0]}).status_code == 401
    assert waiting.post("/login/code/", {"code": codes[0]}).status_code == 302


def test_there_are_no_recovery_codes_without_a_factor(bert):
    answer = logged_in(bert).post(CODES)
    assert answer.status_code == 403
    assert "Set one up first." in answer.text


def test_removing_the_last_factor_removes_the_recovery_codes(anna):
    browser = logged_in(anna, code=code_of())
    page = f"/account/two-step/{Authenticator.objects.get(type='totp').pk}/remove/"
    assert "You will then log in with your password alone." in browser.get(page).text

    assert browser.post(page)["Location"] == "/account/two-step/"

    assert not Authenticator.objects.exists()
    assert events()[-1] == ("user-second-factor-removed", {"factors": ["authenticator app"]})
    assert logged_in(anna).get("/account/").status_code == 200


def test_a_factor_of_somebody_else_is_404(anna, bert):
    browser = logged_in(bert)
    for factor in Authenticator.objects.all():
        assert browser.post(f"/account/two-step/{factor.pk}/remove/").status_code == 404
    assert Authenticator.objects.count() == 2


@pytest.mark.parametrize("method", ["get", "post"])
def test_after_ten_minutes_changes_need_a_confirmation(anna, method):
    browser = logged_in(anna, code=code_of())
    much_later(browser)
    factor = Authenticator.objects.get(type="totp")
    for page in (APP, CODES, f"/account/two-step/{factor.pk}/remove/"):
        assert getattr(browser, method)(page)["Location"] == f"/account/confirm/?next={page}"
    assert Authenticator.objects.count() == 2


@pytest.mark.parametrize("how", ["password", "app", "recovery code"])
def test_password_and_code_confirm(anna, how):
    browser = logged_in(anna, code=code_of())
    much_later(browser)
    form = {
        "password": {"password": PASSWORD},
        "app": {"code": code_of(later=1)},
        "recovery code": {"code": anna.recovery_codes[0]},
    }[how]

    answer = browser.post("/account/confirm/", {"next": APP, **form})

    assert answer["Location"] == APP
    assert browser.get(CODES).status_code == 200


@pytest.mark.parametrize("given", [{}, {"password": "wrong"}, {"code": "000000"}])
def test_wrong_passwords_and_codes_do_not_confirm(anna, given):
    browser = logged_in(anna, code=code_of())
    much_later(browser)

    assert browser.post("/account/confirm/", {"next": APP, **given}).status_code == 400
    assert browser.get(APP).status_code == 302


@pytest.mark.parametrize("field", ["password", "code"])
def test_guessing_at_the_confirmation_is_throttled(anna, field):
    browser = logged_in(anna, code=code_of())
    statuses = [
        browser.post("/account/confirm/", {field: "000000"}).status_code
        for _ in range(FREE_ATTEMPTS_OF_ACCOUNT + 1)
    ]
    assert statuses == [400] * FREE_ATTEMPTS_OF_ACCOUNT + [429]


def test_the_confirmation_never_redirects_to_another_site(bert):
    answer = logged_in(bert).post("/account/confirm/", {"password": PASSWORD, "next": "//evil.example/"})
    assert answer["Location"] == "/account/"


def test_an_account_without_password_and_factor_needs_no_confirmation(bert):
    browser = logged_in(bert)
    bert.set_unusable_password()
    bert.save()
    browser.force_login(bert)
    assert browser.get(APP).status_code == 200
