"""What browsers answer with passkeys is checked. Real answers are in tests/browser/test_second_factor.py."""

import json

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.sessions.models import Session
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from tests.groups.second_factor.conftest import PASSWORD
from tests.support.second_factor import code_of

NEW = "/account/two-step/passkeys/new/"
ALONE = "/login/passkey/"
HOST = "flags.localhost"
SHAPE = {"id": "AAAA", "rawId": "AAAA", "type": "public-key", "clientExtensionResults": {}}
ODD = [
    "",
    "x",
    "null",
    "[]",
    "5",
    "{}",
    '{"id": 1}',
    json.dumps(SHAPE),
    json.dumps(SHAPE | {"response": []}),
    json.dumps(SHAPE | {"response": {}}),
    json.dumps(SHAPE | {"response": {"clientDataJSON": "AAAA", "attestationObject": "AAAA"}}),
    json.dumps(
        SHAPE
        | {"response": {"clientDataJSON": "e30", "attestationObject": "oA", "authenticatorData": "AAAA"}}
    ),
    json.dumps(
        SHAPE
        | {
            "response": {
                "clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoiQUEiLCJvcmlnaW4iOiJ4In0",
                "authenticatorData": "A" * 60,
                "signature": "AAAA",
                "userHandle": "MQ",
            }
        }
    ),
    json.dumps(SHAPE | {"response": {"userHandle": "_____"}}),
    json.dumps(SHAPE | {"response": {"userHandle": 5}}),
    "[" * 5_000,
    "x" * 30_000,
]


def logged_in(user, *, host=HOST):
    browser = Client(HTTP_HOST=host)
    browser.post("/login/", {"username": user.username, "password": PASSWORD})
    return browser


def test_odd_answers_add_nothing(bert):
    browser = logged_in(bert)
    assert '"publicKey"' in browser.get(NEW).text
    for answer in ODD:
        response = browser.post(NEW, {"name": "Laptop", "credential": answer})
        assert response.status_code == 400, answer
        assert "The passkey was not accepted. Try again." in response.text
    assert not Authenticator.objects.exists()


def test_odd_answers_log_nobody_in(anna, caplog):
    after_password, alone = logged_in(anna), Client(HTTP_HOST=HOST)
    after_password.get("/login/code/")
    for answer in ODD:
        assert alone.get(ALONE).json()["publicKey"]["userVerification"] == "required"
        with_password = after_password.post("/login/code/", {"credential": answer})
        without_password = alone.post(ALONE, {"credential": answer, "next": "/activity/"})
        assert with_password.status_code == (401 if answer else 400), answer
        assert without_password["Location"] == "/login/?next=/activity/", answer
    assert caplog.messages.count("Login failed from 127.0.0.1: passkey of anna") == sum(map(bool, ODD))
    assert caplog.messages.count("Login failed from 127.0.0.1: passkey") == len(ODD)
    for browser in (after_password, alone):
        assert browser.get("/account/").status_code == 302
    assert not AuditEvent.objects.filter(type="user-logged-in").exists()


def test_without_a_challenge_nothing_is_accepted(anna):
    browser = Client(HTTP_HOST=HOST)
    assert browser.post(ALONE, {"credential": json.dumps(SHAPE)})["Location"] == "/login/?next=/"
    browser.cookies["passkey_login"] = "forged:cookie"
    assert browser.post(ALONE, {"credential": json.dumps(SHAPE)})["Location"] == "/login/?next=/"


def test_asking_for_a_challenge_stores_nothing(db):
    answer = Client(HTTP_HOST=HOST).get(ALONE)

    assert answer.status_code == 200
    assert not Session.objects.exists()
    cookie = answer.cookies["passkey_login"]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", ALONE)


@pytest.mark.parametrize(
    ("host", "offered"),
    [("127.0.0.1:8000", False), ("[::1]", False), ("localhost:8000", True), ("flags.example.org", False)],
)
def test_passkeys_are_only_offered_where_browsers_have_them(bert, settings, host, offered):
    settings.ALLOWED_HOSTS = ["*"]
    assert (ALONE in Client(HTTP_HOST=host).get("/login/").text) is offered
    browser = logged_in(bert, host=host)
    assert (NEW in browser.get("/account/two-step/").text) is offered
    assert ("publicKey" in browser.get(NEW).text) is offered


def test_passkeys_are_offered_with_https_and_a_host_name(settings, db):
    assert ALONE in Client(HTTP_HOST="flags.example.org").get("/login/", secure=True).text
    settings.PUBLIC_URL = "https://flags.example.org"
    options = Client(HTTP_HOST="localhost").get(ALONE, secure=True).json()
    assert options["publicKey"]["rpId"] == "flags.example.org"


def test_an_app_is_no_passkey(anna):
    browser = logged_in(anna)
    browser.post("/login/code/", {"code": code_of()})
    app = Authenticator.objects.get(type="totp")
    assert browser.get(f"/account/two-step/passkeys/{app.pk}/").status_code == 404


def test_with_passwords_off_a_passkey_alone_is_refused_too(settings, db):
    settings.PASSWORD_LOGIN = False
    browser = Client(HTTP_HOST=HOST)
    assert ALONE not in browser.get("/login/").text
    assert browser.get(ALONE).status_code == 403
    assert browser.post(ALONE, {"credential": json.dumps(SHAPE)}).status_code == 403
