"""Sessions of an account: listed with browser and address, ended one by one or together."""

from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.periodic_tasks import delete_expired
from groups.sessions.store import NOTE_EVERY
from tests.support.page_text import page_text

PASSWORD = "correct horse battery"
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:133.0) Gecko/20100101 Firefox/133.0"
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/17.5 Mobile/15E148 Safari/604.1"
)


@pytest.fixture
def viewer(people):
    people["viewer"].set_password(PASSWORD)
    people["viewer"].save()
    return people["viewer"]


def logged_in(agent=FIREFOX, address="192.0.2.1", name="viewer"):
    browser = Client(REMOTE_ADDR=address, HTTP_USER_AGENT=agent)
    assert browser.post("/login/", {"username": name, "password": PASSWORD})["Location"] == "/"
    return browser


def is_in(browser):
    return browser.get("/account/").status_code == 200


def row_of(browser):
    return UserSession.objects.get(session_key=browser.session.session_key)


def test_all_browsers_are_listed(viewer):
    here, phone = logged_in(), logged_in(SAFARI, "2001:db8::7")
    page = here.get("/account/")
    text = page_text(page)

    assert "Firefox on Windows this browser 192.0.2.1 just now just now" in text
    assert "Safari on iPhone 2001:db8::7" in text
    for browser in (here, phone):
        assert browser.session.session_key not in page.text
    assert f"/account/sessions/{row_of(phone).pk}/end" in page.text
    assert f"/account/sessions/{row_of(here).pk}/end" not in page.text


def test_an_ended_session_is_over_at_once(viewer):
    here, phone = logged_in(), logged_in(SAFARI, "2001:db8::7")
    answer = here.post(f"/account/sessions/{row_of(phone).pk}/end", follow=True)

    assert "Logged out Safari on iPhone." in page_text(answer)
    assert not is_in(phone)
    assert is_in(here)
    event = AuditEvent.objects.get(type="user-session-ended")
    assert (event.subject, event.before) == ("viewer", {"address": "2001:db8::7", "userAgent": SAFARI})
    assert not Session.objects.filter(session_key=phone.session.session_key).exists()


def test_nobody_ends_a_session_of_somebody_else(viewer, browse):
    phone, editor = logged_in(), browse("editor")

    answer = editor.post(f"/account/sessions/{row_of(phone).pk}/end")

    assert answer.status_code == 404
    assert is_in(phone)


@pytest.mark.parametrize("how", ["end others", "change password"])
def test_all_other_sessions_are_ended(viewer, how):
    here, phone = logged_in(), logged_in(SAFARI)
    # A session of an earlier version, which is listed only after its next request.
    unlisted = logged_in()
    row_of(unlisted).delete()

    if how == "end others":
        answer = here.post("/account/sessions/end-others")
    else:
        new = {"password": "other horse battery", "confirmPassword": "other horse battery"}
        answer = here.post("/account/password/", new | {"currentPassword": PASSWORD})

    assert answer["Location"] == "/account/"
    assert is_in(here)
    assert [is_in(phone), is_in(unlisted)] == [False, False]
    assert page_text(here.get("/account/")).count("Firefox on Windows") == 1
    assert [row.session_key for row in UserSession.objects.all()] == [here.session.session_key]


def test_the_login_stays_the_beginning_when_the_key_changes(viewer):
    here = logged_in()
    before = row_of(here)
    here.post("/account/sessions/end-others")

    assert row_of(here).session_key != before.session_key
    assert row_of(here).created_at == before.created_at


def test_an_admin_ends_all_sessions_of_a_person(viewer, browse):
    phone, admin = logged_in(SAFARI), browse("admin")
    page = f"/access/people/{viewer.pk}/"
    assert "Safari on iPhone" in page_text(admin.get(page))

    answer = admin.post(f"{page}end-sessions", follow=True)

    assert "viewer is logged out everywhere." in page_text(answer)
    assert "Not logged in anywhere." in page_text(answer)
    assert not is_in(phone)
    event = AuditEvent.objects.get(type="user-logged-out-everywhere")
    assert (event.actor_name, event.subject) == ("admin", "viewer")


def test_only_admins_end_sessions_of_others(viewer, browse, people):
    admin = browse("admin")
    assert browse("editor").post(f"/access/people/{people['admin'].pk}/end-sessions").status_code == 403
    assert is_in(admin)


@pytest.mark.parametrize("what", ["disable", "delete", "reset-password"])
def test_sessions_end_with_the_account_and_its_password(viewer, browse, what):
    phone, admin = logged_in(), browse("admin")
    page = f"/access/people/{viewer.pk}/"
    if what == "disable":
        admin.post(f"{page}active", {"active": "no"})
        admin.post(f"{page}active", {"active": "yes"})
    else:
        assert admin.post(f"{page}{what}/").status_code == 302

    assert not is_in(phone)
    assert not Session.objects.filter(session_key=phone.session.session_key).exists()
    assert not UserSession.objects.exclude(session_key=admin.session.session_key).exists()


def test_the_last_use_is_stored_every_few_minutes(viewer, standing_clock, monkeypatch):
    here = logged_in()
    at_login = row_of(here).last_seen_at
    with CaptureQueriesContext(connection) as queries:
        assert is_in(here)
    assert not [query for query in queries if query["sql"].startswith(("INSERT", "UPDATE"))]

    later = at_login + NOTE_EVERY + timedelta(seconds=1)
    monkeypatch.setattr(timezone, "now", lambda: later)
    here.defaults["REMOTE_ADDR"] = "192.0.2.99"
    assert is_in(here)
    assert (row_of(here).last_seen_at, row_of(here).ip) == (later, "192.0.2.99")
    assert row_of(here).created_at == at_login


def test_a_session_without_a_row_gets_one(viewer):
    here = logged_in()
    UserSession.objects.all().delete()
    session = here.session
    del session["session_noted"], session["session_since"]
    session.save()

    assert is_in(here)
    assert "Firefox on Windows this browser" in page_text(here.get("/account/"))


def test_behind_a_proxy_the_last_address_counts(viewer, settings):
    settings.BEHIND_PROXY = True
    browser = Client(HTTP_X_FORWARDED_FOR="203.0.113.9, 192.0.2.77")
    browser.post("/login/", {"username": "viewer", "password": PASSWORD})

    assert row_of(browser).ip == "192.0.2.77"


def test_unknown_addresses_and_browsers_are_shown_as_such(viewer):
    browser = logged_in("", "unix:")

    assert "unknown browser this browser unknown" in page_text(browser.get("/account/"))


def test_a_long_user_agent_is_cut(viewer):
    here = logged_in("x" * 5000)
    assert "unknown browser" in page_text(here.get("/account/"))


def test_ended_sessions_are_not_listed_and_are_deleted(viewer):
    here, out, expired = logged_in(), logged_in(SAFARI), logged_in(SAFARI)
    out.post("/logout/")
    Session.objects.filter(session_key=expired.session.session_key).update(
        expire_date=timezone.now() - timedelta(seconds=1)
    )
    assert "Safari" not in page_text(here.get("/account/"))

    delete_expired()

    assert [row.session_key for row in UserSession.objects.all()] == [here.session.session_key]
    assert Session.objects.count() == 1


def test_requests_with_a_token_begin_no_session(api):
    assert api["viewer"].get("/api/admin/user").status_code == 200
    assert not UserSession.objects.exists()


def test_a_session_ends_however_often_it_is_used(people, settings):
    settings.SESSION_COOKIE_AGE = 3600
    browser = Client()
    browser.force_login(people["viewer"])
    ends = browser.session.get_expiry_date()
    session = browser.session
    session["noted"] = 1
    session.save()
    assert Session.objects.get(pk=session.session_key).expire_date == ends
    assert abs((ends - timezone.now()).total_seconds() - 3600) < 600
