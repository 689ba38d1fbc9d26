"""Invitations and new passwords by e-mail, where a mail server is set."""

import re
import smtplib
from datetime import timedelta

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from groups.login import passwords
from groups.models import LoginLink, User
from groups.permissions import BuiltIn
from tests.support.cast import make_user

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery 9"
FORGOT = "/login/forgot/"


class AtOnce:
    """Instead of a thread."""

    def __init__(self, target, args=(), kwargs=None, daemon=None):
        self.run = lambda: target(*args, **(kwargs or {}))

    def start(self):
        self.run()


@pytest.fixture
def server(settings, monkeypatch):
    settings.EMAIL_HOST, settings.PUBLIC_URL = "mail.example.org", "https://flags.example.org"
    settings.ALLOWED_HOSTS = ["*"]
    monkeypatch.setattr(passwords, "Thread", AtOnce)


@pytest.fixture
def aisha(db):
    return make_user("aisha", email="aisha@example.org", password=PASSWORD, root_role=BuiltIn.VIEWER)


def link_in(message):
    [path] = re.findall(r"https://flags\.example\.org(/login/link/\S+)", message.body)
    return path


def forgot(name, **headers):
    return Client().post(FORGOT, {"username": name}, headers=headers)


def test_a_forgotten_password_is_replaced_by_a_link_that_works_once(server, aisha):
    assert "Forgot your password?" in Client().get("/login/").content.decode()
    assert forgot("Aisha@Example.org").status_code == 302
    [message] = mail.outbox
    assert (message.to, message.subject) == (["aisha@example.org"], "A new password for flagadmin")
    path, browser = link_in(message), Client()
    assert User.objects.get().has_usable_password()
    assert "Log in as aisha" in browser.get(path).content.decode()
    assert User.objects.get().has_usable_password()
    page = browser.post(path, follow=True)
    assert page.redirect_chain[-1][0] == "/account/password/?next=/"
    new = "another good password 7"
    assert (
        browser.post("/account/password/?next=/", {"password": new, "confirmPassword": new}).status_code
        == 302
    )
    assert User.objects.get().check_password(new)
    assert Client().post(path).status_code == 404
    assert AuditEvent.objects.filter(type="user-password-changed", actor_name="aisha").count() == 2


def test_the_api_takes_the_token_of_the_link_too(server, aisha):
    assert (
        Client()
        .post("/auth/reset/password-email", {"email": "aisha@example.org"}, "application/json")
        .status_code
        == 200
    )
    token = link_in(mail.outbox[0]).split("/")[-2]
    assert Client().get(f"/auth/reset/validate?token={token}").json()["email"] == "aisha@example.org"
    body = {"token": token, "password": "another good password 7"}
    assert Client().post("/auth/reset/password", body, "application/json").status_code == 200
    assert User.objects.get().check_password(body["password"])


def test_an_ordinary_link_replaces_no_password(server, aisha):
    from groups.login.links import create_login_link

    browser = Client()
    browser.post(create_login_link(aisha))
    assert User.objects.get().check_password(PASSWORD)


@pytest.mark.parametrize("name", ["nobody", "nobody@example.org", "robot", "silent", "gone", "x' OR 1=1"])
def test_the_answer_is_the_same_for_everybody(server, aisha, name):
    make_user("robot", is_service=True, email="robot@example.org")
    make_user("silent")
    make_user("gone", email="gone@example.org", is_active=False)
    known, other = forgot("aisha"), forgot(name)
    assert (other.status_code, other["Location"]) == (known.status_code, known["Location"])
    assert len(mail.outbox) == 1


def test_links_lead_to_the_public_url_whatever_host_is_asked(server, aisha):
    forgot("aisha", host="evil.example")
    assert "evil.example" not in mail.outbox[0].body
    assert link_in(mail.outbox[0])


def test_a_link_is_gone_after_an_hour(server, aisha):
    forgot("aisha")
    LoginLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Client().post(link_in(mail.outbox[0])).status_code == 404
    assert User.objects.get().check_password(PASSWORD)


def test_whoever_asks_too_often_waits_and_locks_nobody_out(server, aisha):
    answers = [forgot("aisha").status_code for _ in range(8)]
    assert answers[:5] == [302] * 5
    assert 429 in answers
    logged_in = Client().post("/login/", {"username": "aisha", "password": PASSWORD})
    assert logged_in.status_code == 302


@pytest.mark.parametrize(
    ("name", "value"), [("EMAIL_HOST", ""), ("PUBLIC_URL", ""), ("PASSWORD_LOGIN", False)]
)
def test_without_a_server_an_address_or_passwords_nothing_is_sent(server, aisha, settings, name, value):
    setattr(settings, name, value)
    assert "Forgot your password?" not in Client().get("/login/").content.decode()
    assert forgot("aisha").status_code == 403
    page = Client().get(FORGOT)
    assert (page.status_code, "Send the link" in page.text) == (200, False)
    assert not mail.outbox


def test_new_people_are_invited_by_mail(server, browse, api):
    created = browse("admin").post(
        "/access/people/new/", {"username": "ken", "email": "ken@example.org", "rootRole": "3"}, follow=True
    )
    assert "was sent to ken@example.org" in created.content.decode()
    assert "/login/link/" not in created.content.decode()
    assert Client().post(link_in(mail.outbox[0]), follow=True).status_code == 200
    made = api["admin"].post("/api/admin/user-admin", {"email": "a@example.org", "rootRole": 3}).json()
    assert (made["emailSent"], len(mail.outbox)) == (True, 2)
    silent = {"email": "b@example.org", "rootRole": 3, "sendEmail": False}
    assert api["admin"].post("/api/admin/user-admin", silent).json()["emailSent"] is False


def test_project_owners_invite_by_mail(server, api, browse):
    body = {"who": "new@example.org", "role": BuiltIn.MEMBER.value}
    invited = api["owner"].post("/api/admin/projects/shop/access/invite", body).json()
    assert invited["emailSent"]
    assert "owner created a flagadmin account for you (Shop)" in mail.outbox[0].body
    page = browse("owner").post(
        "/projects/shop/access/invite/", {"who": "c@example.org", "role": BuiltIn.MEMBER.value}, follow=True
    )
    assert "The link to choose a password was sent" in page.content.decode()
    assert len(mail.outbox) == 2


def test_an_admin_resets_a_password_by_mail(server, browse, aisha):
    page = browse("admin").post(f"/access/people/{aisha.pk}/reset-password/", follow=True)
    assert "was sent to aisha@example.org" in page.content.decode()
    assert "24 hours" in mail.outbox[0].body


def test_a_server_that_refuses_leaves_the_link_to_pass_on(server, browse, monkeypatch):
    def refuse(self, messages):
        raise smtplib.SMTPServerDisconnected

    monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", refuse)
    form = {"username": "ken", "email": "ken@example.org", "rootRole": "3"}
    page = browse("admin").post("/access/people/new/", form, follow=True).content.decode()
    assert "The email could not be sent." in page
    assert "https://flags.example.org/login/link/" in page


def test_the_installation_page_says_whether_mail_is_sent(server, browse, settings):
    assert "mail.example.org:25" in browse("admin").get("/installation/").content.decode()
    settings.PUBLIC_URL = ""
    assert "FLAGADMIN_PUBLIC_URL" in browse("admin").get("/installation/").content.decode()
    settings.EMAIL_HOST = ""
    assert "FLAGADMIN_SMTP_URL" in browse("admin").get("/installation/").content.decode()
