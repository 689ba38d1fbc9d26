"""Which tokens and one-time links end with a password change or reset, and limits of expiring tokens."""

from datetime import datetime

import pytest

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import NotFound
from flagadmin.core.http.logs import drop_secrets
from groups.access import Caller
from groups.login.links import create_login_link, find_link
from groups.login.passwords import change_password, reset_password
from groups.models import ApiToken
from groups.people.actions import update_account
from tests.support.cast import client, make_token

PASSWORD = "correct horse battery"
OWN = "/api/admin/user/tokens"
END = datetime.fromisoformat("2099-01-01T00:00:00Z")


def key_in_link(link: str) -> str:
    return link.strip("/").rpartition("/")[2]


def test_a_personal_token_sets_no_first_password(api, people):
    people["viewer"].set_unusable_password()
    people["viewer"].save()
    body = {"password": PASSWORD, "confirmPassword": PASSWORD}
    response = api["viewer"].post("/api/admin/user/change-password", body)
    assert (response.status_code, response.json()["name"]) == (403, "NoAccessError")
    people["viewer"].refresh_from_db()
    assert not people["viewer"].has_usable_password()


@pytest.mark.parametrize("how", ["reset", "change"])
def test_an_admin_who_resets_a_password_ends_personal_tokens(api, people, callers, how):
    assert api["viewer"].get(OWN).status_code == 200
    if how == "reset":
        reset_password(people["viewer"].pk, caller=callers("admin"))
    else:
        change_password(people["viewer"], PASSWORD, caller=callers("admin"))
    assert api["viewer"].get(OWN).status_code == 401
    assert AuditEvent.objects.filter(type="pat-deleted", actor_name="admin").count() == 1


def test_ones_own_change_keeps_ones_tokens(api, people):
    api["viewer"].get(OWN)
    change_password(people["viewer"], PASSWORD, caller=Caller(user=people["viewer"]))
    assert api["viewer"].get(OWN).status_code == 200


@pytest.mark.parametrize("who", ["viewer", "admin"])
def test_any_change_of_password_ends_open_links(people, callers, who):
    link = create_login_link(people["viewer"])
    change_password(people["viewer"], PASSWORD, caller=callers(who))
    with pytest.raises(NotFound):
        find_link(key_in_link(link))


@pytest.mark.parametrize("later", [None, "2099-01-01T00:00:01Z"])
def test_a_token_that_expires_makes_none_that_lasts_longer(people, later):
    own = client(make_token("personal", user=people["admin"], expires_at=END))
    admin = client(make_token("admin", expires_at=END))
    refusals = [
        own.post(OWN, {"description": "x", "expiresAt": later}),
        own.post("/api/admin/api-tokens", {"tokenName": "x", "type": "admin", "expiresAt": later}),
        admin.post("/api/admin/api-tokens", {"tokenName": "x", "type": "admin", "expiresAt": later}),
    ]
    for response in refusals:
        assert (response.status_code, response.json()["details"][0]["path"]) == (400, "expiresAt")
        assert "2099-01-01" in response.json()["message"]


def test_a_token_that_expires_does_not_prolong_itself(people):
    secret = make_token("admin", expires_at=END)
    response = client(secret).put(f"/api/admin/api-tokens/{secret}", {"expiresAt": "2100-01-01T00:00:00Z"})
    assert (response.status_code, response.json()["details"][0]["path"]) == (400, "expiresAt")
    assert ApiToken.objects.get(kind="admin").expires_at == END


def test_a_token_that_expires_makes_one_that_ends_with_it(people):
    admin = client(make_token("personal", user=people["admin"], expires_at=END))
    assert admin.post(OWN, {"description": "x", "expiresAt": "2099-01-01T00:00:00Z"}).status_code == 201
    sdk = {"tokenName": "sdk", "type": "backend", "environment": "production", "projects": ["*"]}
    assert admin.post("/api/admin/api-tokens", sdk).status_code == 201


@pytest.mark.parametrize(
    "written",
    [
        "/api/x?token=*:*.chosen-by-somebody",
        "/api/x?token=%2A%3A%2A.chosen-by-somebody",
        "/proxy/shop:production.chosen-by-somebody/features",
        "[]:development%2Echosen-by-somebody",
    ],
)
def test_a_key_in_an_address_is_masked_whatever_its_form(written):
    assert "chosen" not in drop_secrets(f"GET {written} 404")


def test_what_is_no_key_stays_in_the_log():
    line = '{"time":"2026-11-22T01:26:14.270+00:00","message":"Serving at http://127.0.0.1:43075/"}'
    assert drop_secrets(line) == line


@pytest.mark.parametrize("changes", [{"email": "new@example.com"}, {"is_active": False}])
def test_open_links_end_with_another_address_and_with_the_account(people, callers, changes):
    """They may be in a mailbox that is no longer theirs, or was never."""
    user = people["viewer"]
    update_account(user.pk, {"email": "old@example.com"}, is_service=False, caller=callers("admin"))
    token = key_in_link(create_login_link(user))
    update_account(user.pk, {"name": "Vera"}, is_service=False, caller=callers("admin"))
    assert find_link(token).user == user
    update_account(user.pk, changes, is_service=False, caller=callers("admin"))
    update_account(user.pk, {"is_active": True}, is_service=False, caller=callers("admin"))
    with pytest.raises(NotFound):
        find_link(token)
