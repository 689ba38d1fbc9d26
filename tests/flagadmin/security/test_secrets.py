"""Tokens, passwords and one-time links are shown once, to their owner, and never appear again."""

import io
import logging

import pytest
from django.db import connection
from django.test import Client

from flagadmin.core.http.logs import JsonFormatter, PlainFormatter, drop_secrets
from groups.login.links import create_login_link
from groups.tokens import make_secret
from tests.support.cast import client, make_token

PASSWORD = "correct horse battery"


@pytest.fixture
def log():
    """Everything that is logged, as production writes it."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield text
    root.removeHandler(handler)
    root.setLevel(level)


def stored():
    """Every text in every table of the database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
        )
        for (table,) in cursor.fetchall():
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            yield from (f"{table}: {row}" for (row,) in cursor.fetchall())


def check_nowhere(secret, log):
    assert [row for row in stored() if secret in row] == []
    assert secret not in log.getvalue()


def random_part(secret):
    return secret.partition(".")[2] or secret.partition(":")[2]


def test_keys(api, people, log):
    bodies = {
        "/api/admin/api-tokens": {"tokenName": "a", "type": "admin"},
        "/api/admin/projects/shop/api-tokens": {
            "tokenName": "b",
            "type": "backend",
            "environment": "production",
        },
        "/api/admin/user/tokens": {"description": "c"},
        f"/api/admin/service-account/{people['service'].pk}/token": {"description": "d"},
    }
    for url, body in bodies.items():
        secret = api["admin"].post(url, body).json()["secret"]
        client(secret).get("/api/admin/user")
        client(secret).post("/api/admin/no-such-thing", {})
        client(secret + "x").get("/api/admin/user")
        check_nowhere(random_part(secret), log)


def test_a_key_in_an_address(api, log):
    for secret in (make_token("backend", projects=["shop"], environment="production"), "*:*.of-our-own"):
        url = f"/api/admin/api-tokens/{secret}"
        answers = [
            api["admin"].patch(url, {}),
            api["admin"].put(url, {"expiresAt": "soon"}),
            api["admin"].get(f"{url}/x"),
            api["admin"].get(f"{url}?a=b"),
            api["nobody"].delete(url),
            api["viewer"].delete(url),
            api["admin"].delete(url),
            api["admin"].delete(url),
        ]
        for answer in answers:
            assert random_part(secret) not in answer.content.decode()
        check_nowhere(random_part(secret), log)


def test_passwords(api, people, log):
    browser = Client()
    user = {"username": "anna", "password": PASSWORD}
    created = api["admin"].post("/api/admin/user-admin", user).json()
    url = f"/api/admin/user-admin/{created['id']}/change-password"
    api["admin"].post(url, {"password": PASSWORD})
    browser.post("/login/", user | {"password": PASSWORD + "wrong"})
    browser.post("/login/", user)
    browser.post("/account/password/", {"currentPassword": PASSWORD, "password": "x", "confirmPassword": "y"})
    check_nowhere(PASSWORD, log)


def test_login_links(people, log):
    token = create_login_link(people["viewer"]).split("/")[3]
    for _ in range(2):
        Client().get(f"/login/link/{token}/")
        Client().post(f"/login/link/{token}/")
        Client().get(f"/login/link/{token}/x")
    check_nowhere(token, log)


def test_an_unforeseen_error_tells_no_secret(api, log, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("a secret of ours")

    monkeypatch.setattr("groups.people.me_api.list_permissions", fail)
    response = api["admin"].get("/api/admin/user")
    assert (response.status_code, response.json()["name"]) == (500, "UnknownError")
    assert "a secret of ours" not in response.content.decode()
    assert response.json()["id"] in log.getvalue()


@pytest.mark.parametrize("formatter", [JsonFormatter(), PlainFormatter()])
def test_log_lines(formatter):
    secret = make_secret("backend", projects=["shop"], environment="production")
    record = logging.makeLogRecord(
        {"name": "x", "msg": "Not Found: /api/admin/api-tokens/%s", "args": (secret,)}
    )
    assert "shop:production" not in formatter.format(record)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DELETE /api/admin/api-tokens/17", "DELETE /api/admin/api-tokens/17"),
        ("DELETE /api/admin/api-tokens/17?x=1", "DELETE /api/admin/api-tokens/17?x=1"),
        ("/api/admin/api-tokens/17.x", "/api/admin/api-tokens/…"),
        ("/api/admin/api-tokens/*:*.secret", "/api/admin/api-tokens/…"),
        ('"/login/link/abc-_/"', '"/login/link/…/"'),
        ('"/login/invite/abc-_/"', '"/login/invite/…/"'),
        ("/calendar/abc-_.ics?project=shop", "/calendar/….ics?project=shop"),
        ("GET /invite/abc-_/validate", "GET /invite/…/validate"),
        ("/api/admin/invite-link/tokens/abc-_?x=1", "/api/admin/invite-link/tokens/…?x=1"),
        ("/auth/reset/validate?token=abc-_&x=1", "/auth/reset/validate?token=…&x=1"),
        ("sent user:" + "ab" * 28, "sent user:ababab…"),
        ("sha " + "ab" * 32, "sha " + "ab" * 32),
    ],
)
def test_what_is_cut(text, expected):
    assert drop_secrets(text) == expected
