"""A form submitted after the session has ended is not saved, and is shown filled in after login."""

import re
from html import unescape

import pytest
from django.test import Client

from groups.models import User
from projects.models import Flag
from tests.support.cast import make_user

PASSWORD = "correct horse battery"
NEW_FLAG = "/projects/shop/features/new"
ENTERED = {"name": "one-click-pay", "type": "release", "description": "a & b = ü"}
OURS = {"Origin": "http://testserver"}


@pytest.fixture
def ada(people, shop):
    return make_user("ada", root_role=people["admin"].root_role_id, password=PASSWORD)


def hidden(page, name):
    return unescape(re.search(f'name="{name}" value="([^"]*)"', page.text)[1])


def log_in(browser, page):
    form = {name: hidden(page, name) for name in ("entered", "next")}
    return browser.post("/login/", {"username": "ada", "password": PASSWORD, **form}, follow=True)


def test_an_ended_session_gives_the_form_back_filled_in(ada):
    browser = Client()
    response = browser.post(NEW_FLAG, ENTERED)
    assert response.status_code == 401
    assert "What you entered is kept" in response.text or "what you entered is kept" in response.text
    assert "/applications/" not in response.text  # no tabs of the section

    back = log_in(browser, response)

    assert back.redirect_chain[-1][0] == NEW_FLAG
    assert "nothing was saved" in back.text
    assert 'value="one-click-pay"' in back.text
    assert "a &amp; b = ü" in back.text
    assert not Flag.objects.exists()
    assert 'value="one-click-pay"' not in browser.get(NEW_FLAG).text  # once


def test_a_wrong_password_loses_nothing(ada):
    browser = Client()
    response = browser.post(NEW_FLAG, ENTERED)
    wrong = browser.post(
        "/login/",
        {"username": "ada", "password": "x", "entered": hidden(response, "entered"), "next": NEW_FLAG},
    )

    assert wrong.status_code == 401
    assert hidden(wrong, "entered") == hidden(response, "entered")


def test_passwords_are_never_carried_along(ada):
    response = Client().post(
        "/account/password/", {"password": PASSWORD, "confirmPassword": PASSWORD, "x": "y"}
    )

    assert PASSWORD not in response.text


def test_what_cannot_be_filled_in_leads_back_to_its_page(ada):
    page = "/projects/shop/?q=cart"
    response = Client().post(
        "/projects/shop/favorite", {"favorite": "on"}, headers={"Referer": f"http://testserver{page}"}
    )

    assert response["Location"] == "/login/?next=/projects/shop/%3Fq%3Dcart"


def test_a_part_that_a_script_submits_leaves_the_form_there(ada):
    response = Client().post(NEW_FLAG, ENTERED, headers={"HX-Request": "true"})

    assert response.status_code == 401
    assert "Log in again in another tab" in response.text


@pytest.mark.parametrize("script", [False, True], ids=["form", "script"])
def test_a_form_with_an_old_token_comes_back_filled_in(ada, script):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(ada)
    headers = {**OURS, **({"HX-Request": "true"} if script else {})}
    response = browser.post(NEW_FLAG, {**ENTERED, "csrfmiddlewaretoken": "x" * 64}, headers=headers)

    assert response["HX-Redirect" if script else "Location"] == NEW_FLAG
    back = browser.get(NEW_FLAG)
    assert 'value="one-click-pay"' in back.text
    assert "Check it and submit it again." in back.text
    assert not Flag.objects.exists()


def test_without_session_and_token_the_script_is_told_so_and_the_page_stays(shop):
    browser = Client(enforce_csrf_checks=True)
    answer = browser.post("/projects/shop/features/cart/switch", headers={**OURS, "HX-Request": "true"})

    assert answer.status_code == 401
    assert "Log in again in another tab" in answer.text


@pytest.mark.parametrize(
    "headers", [{}, {"Origin": "http://evil.example"}], ids=["no origin", "another site"]
)
def test_nothing_is_kept_that_another_site_may_have_sent(ada, headers):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(ada)
    response = browser.post(NEW_FLAG, ENTERED, headers=headers)

    assert response.status_code == 403
    assert "Go back, reload the page and submit the form again." in response.text
    assert 'value="one-click-pay"' not in browser.get(NEW_FLAG).text


def test_a_segment_comes_back_with_its_conditions(ada):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(ada)
    form = {"name": "nordic", "do": "save"}
    browser.post("/segments/new", form, headers=OURS)

    assert 'value="nordic"' in browser.get("/segments/new").text
    assert User.objects.filter(username="ada").exists()


@pytest.mark.parametrize("current", ["http://[", "nonsense", "", "//evil.example/x"])
def test_a_part_asked_for_from_an_odd_page_leads_to_the_login(shop, current):
    response = Client().get("/playground/", headers={"HX-Request": "true", "HX-Current-URL": current})

    assert response["HX-Redirect"].startswith("/login/?next=")
    assert "evil" not in response["HX-Redirect"]
