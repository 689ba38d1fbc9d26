"""Tokens created at startup (INIT_*_API_TOKENS) and by `manage.py token create`."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from groups.access import Caller
from groups.models import ApiToken
from groups.tokens import hash_secret, make_visible_prefix
from projects.tokens.actions import delete_token
from projects.tokens.start_up import create_init_tokens
from tests.support.cast import client, make_user
from tests.support.for_each import for_each

ADMIN, BACKEND, FRONTEND = (
    "*:*.unleash-admin-secret",
    "*:development.one-long-secret-0001",
    "default:production.two-long-secret-0002",
)


def test_each_variable_makes_its_kind(db):
    environ = {
        "INIT_ADMIN_API_TOKENS": ADMIN,
        "INIT_CLIENT_API_TOKENS": f"{BACKEND}, default:production.three-long-secret-0003",
        "INIT_BACKEND_API_TOKENS": "*:development.four-long-secret-0004",
        "INIT_FRONTEND_API_TOKENS": FRONTEND,
    }
    assert create_init_tokens(environ) == 5
    kinds = ApiToken.objects.order_by("prefix").values_list("kind", flat=True)
    assert sorted(kinds) == ["admin", "backend", "backend", "backend", "frontend"]
    assert client(ADMIN).get("/api/admin/api-tokens").status_code == 200
    token = ApiToken.objects.get(kind="frontend")
    assert (token.environment_id, token.all_projects) == ("production", False)
    assert [scope.project_id for scope in token.scopes.all()] == ["default"]


def test_a_second_start_or_an_empty_variable_creates_nothing(db):
    environ = {"INIT_ADMIN_API_TOKENS": f"{ADMIN},{ADMIN}"}
    assert create_init_tokens(environ) == 1
    assert create_init_tokens(environ) == 0

    assert create_init_tokens({"INIT_ADMIN_API_TOKENS": " , "}) == 0


@for_each(
    ("variable", "key"),
    [
        ("INIT_ADMIN_API_TOKENS", "topsecret-topsecret"),
        ("INIT_ADMIN_API_TOKENS", "default:*.topsecret-topsecret"),
        ("INIT_ADMIN_API_TOKENS", "*:development.topsecret-topsecret"),
        ("INIT_CLIENT_API_TOKENS", "topsecret-topsecret"),
        ("INIT_CLIENT_API_TOKENS", "*:topsecret-topsecret"),
        ("INIT_CLIENT_API_TOKENS", "*:*.topsecret-topsecret"),
        ("INIT_FRONTEND_API_TOKENS", "*:development."),
        ("INIT_FRONTEND_API_TOKENS", f"{'x' * 101}:development.topsecret-topsecret"),
    ],
)
def test_a_malformed_key_is_named_and_the_others_are_taken(db, caplog, variable, key):
    fine = f"{'*:*' if 'ADMIN' in variable else '*:development'}.fine-and-long-enough"
    assert create_init_tokens({variable: f"{fine},{key}"}) == 1
    assert f"{variable}, token 2 is not taken: " in caplog.text
    assert "topsecret" not in caplog.text
    assert ApiToken.objects.get().secret_hash == hash_secret(fine)


def test_one_key_of_two_kinds(db, caplog):
    assert create_init_tokens({"INIT_CLIENT_API_TOKENS": BACKEND, "INIT_FRONTEND_API_TOKENS": BACKEND}) == 1
    assert "INIT_FRONTEND_API_TOKENS, token 1 is not taken: this secret already belongs" in caplog.text
    assert ApiToken.objects.get().kind == "backend"


def test_a_revoked_key_stays_revoked(db, caplog):
    environ = {"INIT_ADMIN_API_TOKENS": ADMIN}
    create_init_tokens(environ)
    delete_token(ADMIN, caller=Caller.system())
    assert create_init_tokens(environ) == 0
    assert client(ADMIN).get("/api/admin/api-tokens").status_code == 401
    assert "INIT_ADMIN_API_TOKENS, token 1 was revoked" in caplog.text
    assert ADMIN not in caplog.text


def test_a_short_key_is_not_taken_but_one_of_an_earlier_version_works(db, caplog):
    assert create_init_tokens({"INIT_ADMIN_API_TOKENS": "*:*.fifteen-letters"}) == 0
    assert "token 1 is not taken: the part after the dot must have at least 16" in caplog.text

    short = "*:*.abc"
    make = ApiToken.objects.create
    make(kind="admin", name="from INIT_ADMIN_API_TOKENS", secret_hash=hash_secret(short), all_projects=True)
    assert create_init_tokens({"INIT_ADMIN_API_TOKENS": short}) == 0
    assert make_visible_prefix(short) == "*:*."


def token(*args):
    out = StringIO()
    call_command("token", "create", *args, stdout=out)
    return out.getvalue().strip()


def test_the_command_creates_tokens_of_each_kind(db):
    secret = token("--kind", "admin", "--name", "ops")
    assert client(secret).get("/api/admin/api-tokens").status_code == 200
    secret = token("--kind", "client", "--name", "x", "--projects", "default", "--environment", "production")
    assert secret.startswith("default:production.")
    secret = token("--kind", "frontend", "--name", "x", "--projects", "*", "--environment", "production")
    assert secret.startswith("*:production.")


def test_command_for_a_person(db):
    make_user("anna", email="anna@example.org")
    for name in ("anna", "Anna@Example.org"):
        secret = token("--kind", "personal", "--name", f"of {name}", "--user", name)
        assert client(secret).get("/api/admin/user/tokens").status_code == 200


@for_each(
    ("args", "words"),
    [
        (["--kind", "backend", "--environment", "production"], "--projects is required"),
        (["--kind", "backend", "--projects", "default"], "one environment"),
        (["--kind", "backend", "--projects", "nope", "--environment", "production"], "nope not found"),
        (["--kind", "personal"], "--user is required"),
        (["--kind", "personal", "--user", "nobody"], "nobody not found"),
    ],
)
def test_command_refuses(db, args, words):
    with pytest.raises(CommandError, match=words):
        token("--name", "x", *args)
