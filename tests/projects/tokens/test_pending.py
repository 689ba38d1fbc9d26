"""Start-up tokens of another installation: those for what does not exist yet are pending until it does."""

import json
from datetime import UTC, datetime

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from groups.models import ApiToken
from groups.tokens import hash_secret
from projects.environments.actions import create_environment
from projects.projects.actions import archive_project, create_project, revive_project
from projects.tokens.actions import delete_token
from projects.tokens.start_up import create_init_tokens
from tests.support.cast import client
from tests.support.for_each import for_each

pytestmark = pytest.mark.django_db

VARIABLE = "INIT_CLIENT_API_TOKENS"
SECRET = "8f2c-a-long-random-part"
SEVERAL = f"[]:production.{SECRET}"
SYSTEM = Caller.system()


def start(value, variable=VARIABLE):
    return create_init_tokens({variable: value if isinstance(value, str) else json.dumps(value)})


def token_of(secret):
    return ApiToken.objects.get(secret_hash=hash_secret(secret))


def scope(secret):
    token = token_of(secret)
    projects = ["*"] if token.all_projects else sorted(s.project_id for s in token.scopes.all())
    return token.environment_id, projects


def answers(secret):
    return client(secret).get("/api/client/features").status_code


def make(project=None, environment=None):
    if project:
        create_project({"id": project, "name": project}, caller=SYSTEM)
    if environment:
        create_environment({"name": environment, "type": "test"}, caller=SYSTEM)


def test_a_token_for_an_unknown_project_works_as_soon_as_there_is_one(caplog):
    secret = f"pay:production.{SECRET}"
    assert start(f"*:development.{SECRET},{secret}") == 2
    assert f"{VARIABLE}, token 2 is pending: it waits for project pay." in caplog.text
    assert SECRET not in caplog.text
    assert (scope(secret), answers(secret)) == ((None, []), 401)
    make(project="pay")
    assert (scope(secret), answers(secret)) == (("production", ["pay"]), 200)
    event = AuditEvent.objects.filter(type="api-token-updated").get()
    assert event.before["pending"] is True
    assert event.after["projects"] == ["pay"]
    assert "pending" not in event.after


def test_a_token_for_an_unknown_environment():
    secret = f"*:qa.{SECRET}"
    start(secret, "INIT_FRONTEND_API_TOKENS")
    assert client(secret).get("/api/frontend").status_code == 401
    make(environment="qa")
    assert scope(secret) == ("qa", ["*"])
    assert client(secret).get("/api/frontend").status_code == 200


def test_it_waits_for_everything_that_it_names():
    start([{"secret": SEVERAL, "projects": ["default", "pay", "shop"]}])
    make(project="pay")
    assert token_of(SEVERAL).is_pending
    make(project="shop")
    assert scope(SEVERAL) == ("production", ["default", "pay", "shop"])


def test_an_archived_project_does_not_count():
    make(project="pay")
    archive_project("pay", caller=SYSTEM)
    secret = f"pay:production.{SECRET}"
    start(secret)
    assert token_of(secret).is_pending
    revive_project("pay", caller=SYSTEM)
    assert scope(secret) == ("production", ["pay"])


def test_a_token_of_several_projects_gives_no_access_until_they_are_named(caplog):
    assert start(SEVERAL) == 1
    assert "waits for the names of its projects" in caplog.text
    assert scope(SEVERAL) == (None, [])
    make(project="pay")
    assert (token_of(SEVERAL).is_pending, answers(SEVERAL)) == (True, 401)
    assert start([{"secret": SEVERAL, "projects": ["pay"]}]) == 0
    assert (scope(SEVERAL), answers(SEVERAL)) == (("production", ["pay"]), 200)


def test_the_list_of_another_installation_is_taken_as_it_is(caplog):
    listed = {
        "secret": SEVERAL,
        "tokenName": "checkout",
        "type": "client",
        "environment": "production",
        "project": "default",
        "projects": ["default"],
        "expiresAt": "2099-01-02T03:04:05.000Z",
        "createdAt": "2022-01-01T00:00:00.000Z",
        "alias": None,
        "seenAt": None,
        "secure": False,
    }
    admin = {"secret": f"*:*.{SECRET}", "type": "admin", "projects": ["*"], "environment": "*"}
    assert start({"tokens": [listed, admin]}) == 1
    token = token_of(SEVERAL)
    assert (token.name, token.expires_at) == ("checkout", datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert "token 2 is not taken: its type is admin; name it in INIT_ADMIN_API_TOKENS." in caplog.text


def test_a_pending_token_keeps_its_expiry_or_takes_that_of_its_projects():
    secret = f"pay:production.{SECRET}"
    start([{"secret": secret, "expiresAt": "2020-01-01T00:00:00Z"}])
    make(project="pay")
    assert token_of(secret).expires_at == datetime(2020, 1, 1, tzinfo=UTC)
    assert answers(secret) == 401

    start(SEVERAL)
    start([{"secret": SEVERAL, "projects": ["default"], "expiresAt": "2020-01-01T00:00:00Z"}])
    assert scope(SEVERAL) == ("production", ["default"])
    assert token_of(SEVERAL).expires_at == datetime(2020, 1, 1, tzinfo=UTC)


def test_an_expiry_set_here_is_not_lost_with_the_next_start(api, caplog):
    secret = f"pay:production.{SECRET}"
    start(secret)
    path = f"/api/admin/api-tokens/{token_of(secret).pk}"
    assert api["admin"].put(path, {"expiresAt": "2020-01-01T00:00:00Z"}).status_code == 200
    start(secret)
    start([{"secret": secret, "expiresAt": "2099-01-01T00:00:00Z"}])
    assert "exists and expires at 2020-01-01T00:00:00.000Z; its expiresAt here is not applied." in caplog.text
    assert token_of(secret).expires_at == datetime(2020, 1, 1, tzinfo=UTC)


def test_an_admin_token_is_never_narrowed_in_name_only(caplog):
    secret = f"*:*.{SECRET}"
    assert start([{"secret": secret, "projects": ["default"]}], "INIT_ADMIN_API_TOKENS") == 0
    assert "token 1 is not taken: an admin token is for all projects." in caplog.text
    assert start([{"secret": secret, "projects": ["*"]}], "INIT_ADMIN_API_TOKENS") == 1


def test_another_expiry_of_an_existing_token_is_said(caplog):
    secret = f"default:production.{SECRET}"
    start(secret)
    start([{"secret": secret, "expiresAt": "2099-01-01T00:00:00Z"}])
    assert "exists and does not expire; its expiresAt here is not applied." in caplog.text
    assert token_of(secret).expires_at is None


@for_each(
    ("entry", "words"),
    [
        ({"secret": SEVERAL, "projects": ["*"]}, "is pending: it waits for the names of its projects"),
        ({"secret": f"pay:production.{SECRET}", "projects": ["*"]}, "is pending: it waits for project pay"),
        ({"secret": f"default:production.{SECRET}", "projects": ["default", "pay"]}, "other projects"),
        ({"secret": SEVERAL, "projects": ["default", "*"]}, "other projects"),
        ({"secret": f"default:production.{SECRET}", "environment": "development"}, "another environment"),
    ],
)
def test_json_never_widens_a_token(caplog, entry, words):
    start([entry])
    assert words in caplog.text
    assert not ApiToken.objects.filter(pending_scope__isnull=True).exists()
    assert not ApiToken.objects.filter(all_projects=True).exists()


def test_json_may_narrow_a_token():
    secret = f"*:production.{SECRET}"
    start([{"secret": secret, "projects": ["default"]}])
    assert scope(secret) == ("production", ["default"])


@for_each(
    "value",
    [
        '[{"secret": "x"',
        '{"tokens": 1}',
        '{"a": []}',
        [{}],
        [{"secret": 1}],
        [{"secret": f"default:production.{SECRET}", "expiresAt": "2030-01-01"}],
        [{"secret": f"default:production.{SECRET}", "projects": "default"}],
        [{"secret": f"default:production.{SECRET}", "tokenName": "a\0"}],
        [{"secret": f"default:production.{SECRET}", "type": "robot"}],
        [{"secret": f"default:production.{SECRET}…"}],
        [{"secret": f"default:production.\0{SECRET}"}],
        [{"secret": f"pay\0:production.{SECRET}"}],
        [{"secret": f"default:production.{SECRET}", "expiresAt": "9999-12-31T23:59:59-01:00"}],
        [{"secret": f"default:production.{SECRET}", "expiresAt": "0001-01-01T00:00:00+01:00"}],
        [{"secret": f"*:production.{SECRET}", "projects": ["*", "default"]}],
        '[{"secret":' * 100_000,
        [{"no": SECRET}, SECRET],
    ],
)
def test_malformed_json_is_named_without_its_secret(caplog, value):
    assert start(value) == 0
    assert f"{VARIABLE}" in caplog.text
    assert "is not taken: " in caplog.text
    assert SECRET not in caplog.text


def test_a_revoked_pending_token_stays_revoked(caplog):
    secret = f"pay:production.{SECRET}"
    start(secret)
    delete_token(secret, caller=SYSTEM)
    assert start(secret) == 0
    assert "was revoked" in caplog.text
    make(project="pay")
    assert answers(secret) == 401


def test_lists_show_what_a_pending_token_waits_for_and_find_it(api, browse):
    secret = f"pay:qa.{SECRET}"
    start([{"secret": secret, "tokenName": "checkout"}])
    (listed,) = api["admin"].get("/api/admin/api-tokens/checkout").json()["tokens"]
    assert (listed["environment"], listed["projects"], listed["project"]) == ("qa", ["pay"], "pay")
    assert listed["pendingFor"] == "environment qa and project pay"
    page = browse("admin").get("/access/tokens/?use=pending").content.decode()
    assert "pending" in page
    assert "waits for environment qa and project pay" in page
    response = api["admin"].put(
        f"/api/admin/api-tokens/{listed['id']}", {"expiresAt": "2099-01-01T00:00:00Z"}
    )
    assert response.status_code == 200
    assert api["admin"].delete(f"/api/admin/api-tokens/{listed['id']}").status_code == 200
    assert not ApiToken.objects.filter(name="checkout").exists()

    start([{"secret": f"pay:production.{SECRET}", "tokenName": "checkout"}])
    for environment, is_listed in (("production", True), ("development", False)):
        page = browse("admin").get(f"/access/tokens/?environment={environment}").content.decode()
        assert ("checkout" in page) is is_listed


def test_an_edge_proxy_learns_nothing_of_a_pending_token(api):
    secret = f"pay:production.{SECRET}"
    start(secret)
    response = api["nobody"].post("/edge/validate", {"tokens": [secret]}, format="json")
    assert response.json() == {"tokens": []}
