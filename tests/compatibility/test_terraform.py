"""The Terraform provider's requests, in its order: every value it sets must read back unchanged.

A token's secret reads back only with the credential that created it.
"""

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.models import ApiToken
from tests.support.cast import client, make_token

pytestmark = pytest.mark.django_db
ADMIN = "/api/admin"
TOKEN = {
    "tokenName": "checkout",
    "type": "client",
    "environment": "development",
    "projects": ["shop"],
    "expiresAt": "2099-01-01T00:00:00Z",
}
SWITCH = {"name": "UPDATE_FEATURE_ENVIRONMENT", "environment": "development"}


def call(who, method, path, body=None, *, status=200):
    response = getattr(who, method)(f"{ADMIN}/{path}", body, format="json")
    assert response.status_code == status, response.content
    return response.json() if response.content else None


def test_role_permission_access_token(api, people, shop):
    terraform = api["admin_token"]

    # A role with a permission that it looks up.
    known = call(terraform, "get", "permissions")["permissions"]
    development = next(place for place in known["environments"] if place["name"] == "development")
    permission = next(one for one in development["permissions"] if one["name"] == SWITCH["name"])
    made = call(terraform, "post", "roles", {"name": "Switcher", "type": "custom", "permissions": [SWITCH]})
    role = made["roles"]
    assert (made["version"], role["name"], role["type"]) == (1, "Switcher", "custom")
    read = call(terraform, "get", f"roles/{role['id']}")
    assert read == role
    assert read["permissions"] == [permission | {"environment": "development"}]
    changed = call(terraform, "put", f"roles/{role['id']}", {"name": "Switcher", "description": "Switches"})
    assert changed["roles"]["description"] == "Switches"

    # Access: the whole of it, read back as it was set.
    group = call(terraform, "post", "groups", {"name": "Crew", "users": []}, status=201)
    outsider = people["outsider"].pk
    access = {"roles": [{"id": role["id"], "users": [outsider], "groups": [group["id"]]}]}
    for _ in range(2):
        call(terraform, "put", "projects/shop/access", access)
    shown = call(terraform, "get", "projects/shop/access")
    assert [(user["id"], user["roles"]) for user in shown["users"]] == [(outsider, [role["id"]])]
    assert [(one["id"], one["roles"]) for one in shown["groups"]] == [(group["id"], [role["id"]])]

    token = call(terraform, "post", "api-tokens", TOKEN, status=201)
    assert client(token["secret"]).get("/api/client/features").status_code == 200
    assert own(terraform, token) | {"seenAt": None} == token

    # And all of it away again.
    call(terraform, "delete", f"api-tokens/{token['secret']}")
    call(terraform, "put", "projects/shop/access", {"roles": []})
    call(terraform, "delete", f"groups/{group['id']}")
    call(terraform, "delete", f"roles/{role['id']}")


def own(terraform, token):
    """The entry of the list that the provider takes for its token: the one with the secret of its state."""
    listed = call(terraform, "get", "api-tokens")["tokens"]
    return next((entry for entry in listed if entry["secret"] == token["secret"]), None)


@pytest.mark.parametrize("owner", ["admin_token", "admin"])
def test_a_token_is_recognized_changed_and_deleted_by_its_secret(api, shop, owner):
    terraform = api[owner]
    token = call(terraform, "post", "api-tokens", TOKEN, status=201)
    for key, value in TOKEN.items():
        assert own(terraform, token)[key] == (value if key != "expiresAt" else "2099-01-01T00:00:00.000Z")
    later = {"expiresAt": "2100-01-01T00:00:00.000Z"}
    call(terraform, "put", f"api-tokens/{token['secret']}", later)
    assert own(terraform, token)["expiresAt"] == later["expiresAt"]
    call(terraform, "delete", f"api-tokens/{token['secret']}")
    assert own(terraform, token) is None


def test_another_credential_has_the_identifier_only(api, people, shop):
    token = call(api["admin_token"], "post", "api-tokens", TOKEN, status=201)
    others = [client(make_token("admin")), api["admin"], client(make_token("personal", user=people["admin"]))]
    for other in others:
        (listed,) = call(other, "get", "api-tokens/checkout")["tokens"]
        assert listed["secret"] == token["identifier"] + "…"
        assert (listed["secure"], listed["identifier"]) == (True, token["identifier"])
    call(others[0], "put", f"api-tokens/{token['identifier']}", {"expiresAt": "2100-01-01T00:00:00Z"})
    call(others[0], "delete", f"api-tokens/{token['identifier']}")
    assert client(token["secret"]).get("/api/client/features").status_code == 401


def test_a_projects_token_is_recognized(api, shop):
    owner = api["owner"]
    body = {key: value for key, value in TOKEN.items() if key != "projects"}
    token = call(owner, "post", "projects/shop/api-tokens", body, status=201)
    (listed,) = call(owner, "get", "projects/shop/api-tokens")["tokens"]
    assert listed["secret"] == token["secret"]
    (listed,) = call(api["admin"], "get", "projects/shop/api-tokens")["tokens"]
    assert listed["secret"] != token["secret"]


def test_the_secret_is_not_stored_and_needs_the_servers_key(api, shop, settings):
    terraform = api["admin_token"]
    token = call(terraform, "post", "api-tokens", TOKEN, status=201)
    stored = str(ApiToken.objects.filter(name="checkout").values())
    stored += str(AuditEvent.objects.filter(type="api-token-created").values())
    assert token["secret"].removeprefix(token["identifier"]) not in stored
    key = settings.SECRET_KEY
    settings.SECRET_KEY = "another" * 10
    assert own(terraform, token) is None
    settings.SECRET_KEY_FALLBACKS = [key]
    assert own(terraform, token)


def test_a_service_account_and_its_token(api):
    terraform = api["admin_token"]
    body = {"username": "deployer", "name": "Deployer", "rootRole": 2}
    account = call(terraform, "post", "service-account", body, status=201)
    assert account["tokens"] == []
    path = f"service-account/{account['id']}"
    token = call(terraform, "post", f"{path}/token", {"description": "ci", "expiresAt": None}, status=201)
    assert client(token.pop("secret")).get("/api/admin/user").json()["user"]["username"] == "deployer"
    listed = call(terraform, "get", "service-account")["serviceAccounts"]
    mine = next(one for one in listed if one["id"] == account["id"])
    (shown,) = mine["tokens"]
    assert shown | {"seenAt": None} == token
    call(terraform, "delete", f"{path}/token/{token['id']}")
    assert call(terraform, "get", path)["tokens"] == []
    call(terraform, "delete", path)
