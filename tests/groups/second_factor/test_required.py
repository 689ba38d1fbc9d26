"""FLAGADMIN_REQUIRE_SECOND_FACTOR: off, admins or all."""

import pytest
from django.core.exceptions import ImproperlyConfigured, MiddlewareNotUsed
from django.http import HttpResponse
from django.test import Client

from flagadmin.core import env
from groups.login.links import create_login_link
from groups.permissions import BuiltIn
from groups.second_factor.required import RequireSecondFactorMiddleware
from tests.groups.second_factor.conftest import PASSWORD
from tests.support.cast import client, make_token
from tests.support.second_factor import code_of, set_up_app

SETUP = "/account/two-step/"
WORK = ["/", "/account/", "/access/people/", "/admin/", "/search/", "/account/tokens/new/"]


@pytest.fixture(autouse=True)
def required(settings):
    settings.REQUIRE_SECOND_FACTOR = "all"


def logged_in(user):
    browser = Client()
    browser.post("/login/", {"username": user.username, "password": PASSWORD})
    return browser


def test_without_the_setting_no_factor_is_required():
    assert env.choice("FLAGADMIN_REQUIRE_SECOND_FACTOR", "off", "admins", "all") == "off"


def test_an_unknown_value_of_the_setting_is_refused(monkeypatch):
    monkeypatch.setenv("FLAGADMIN_REQUIRE_SECOND_FACTOR", "everybody")
    with pytest.raises(ImproperlyConfigured, match="must be admins, all or off, not 'everybody'"):
        env.choice("FLAGADMIN_REQUIRE_SECOND_FACTOR", "off", "admins", "all")


@pytest.mark.parametrize("method", ["get", "post"])
def test_people_without_a_factor_can_only_set_one_up(bert, method):
    browser = logged_in(bert)
    for page in WORK:
        assert getattr(browser, method)(page)["Location"] == SETUP, page
    assert "Set one up to go on." in browser.get(SETUP).text
    for page in ("/account/password/", "/account/two-step/app/", "/account/confirm/"):
        assert browser.get(page).status_code == 200, page
    part = browser.get("/activity/", headers={"HX-Request": "true"})
    assert part["HX-Redirect"] == SETUP


def test_the_api_refuses_the_session_but_no_token(bert):
    response = logged_in(bert).get("/api/admin/projects")
    assert (response.status_code, response.json()["name"]) == (403, "NoAccessError")
    assert "requires a second factor" in response.json()["message"]
    token = client(make_token("personal", user=bert))
    assert token.get("/api/admin/projects").status_code == 200
    assert client(make_token("admin")).get("/api/admin/projects").status_code == 200


@pytest.mark.parametrize(
    "headers", [{"X-API-Key": "x"}, {"Authorization": " "}, {"Authorization": "x"}], ids=str
)
def test_no_header_gets_around_it(bert, headers):
    browser = logged_in(bert)
    assert browser.get("/api/admin/projects", headers=headers).status_code in (401, 403)
    assert browser.get("/projects/", headers=headers)["Location"] == SETUP


def test_people_with_a_factor_see_everything(bert, anna):
    browser = logged_in(bert)
    set_up_app(bert)
    assert browser.get("/").status_code == 200
    admin = logged_in(anna)
    admin.post("/login/code/", {"code": code_of()})
    assert admin.get("/admin/").status_code == 200


def test_the_setting_can_be_for_admins_only(bert, settings):
    settings.REQUIRE_SECOND_FACTOR = "admins"
    browser = logged_in(bert)
    assert browser.get("/").status_code == 200
    bert.root_role_id = BuiltIn.ADMIN
    bert.save()
    assert browser.get("/")["Location"] == SETUP


def test_invited_people_choose_a_password_first(bert):
    bert.set_unusable_password()
    bert.save()
    browser = Client()
    browser.post(create_login_link(bert, "/account/password/"))
    new = {"password": PASSWORD, "confirmPassword": PASSWORD}
    assert browser.post("/account/password/", new)["Location"] == "/account/"
    assert browser.get("/account/")["Location"] == SETUP


def test_logins_through_the_provider_need_no_factor(bert):
    browser = logged_in(bert)
    session = browser.session
    session["account_authentication_methods"][0]["method"] = "socialaccount"
    session.save()
    assert browser.get("/").status_code == 200


def test_visitors_and_probes_are_not_affected(db):
    assert Client().get("/login/").status_code == 200
    assert Client().get("/healthz").status_code == 200
    assert Client().get("/")["Location"] == "/login/?next=/"


def test_public_pages_stay_open(bert):
    browser = logged_in(bert)
    assert browser.get("/api/docs/").status_code == 200


def test_without_the_setting_there_is_no_middleware(settings):
    settings.REQUIRE_SECOND_FACTOR = "off"
    with pytest.raises(MiddlewareNotUsed):
        RequireSecondFactorMiddleware(lambda request: HttpResponse())
