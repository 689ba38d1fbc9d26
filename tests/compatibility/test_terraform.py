"""The Terraform provider's requests, in its order: every value it sets must read back unchanged.

Only secrets differ, because they are shown once, in the response that creates them.
"""

import pytest

from tests.support.cast import client

pytestmark = pytest.mark.django_db
ADMIN = "/api/admin"
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

    # A token, whose secret works and is not shown again.
    asked = {
        "tokenName": "checkout",
        "type": "client",
        "environment": "development",
        "projects": ["shop"],
        "expiresAt": "2099-01-01T00:00:00Z",
    }
    token = call(terraform, "post", "api-tokens", asked, status=201)
    assert client(token["secret"]).get("/api/client/features").status_code == 200
    (listed,) = call(terraform, "get", "api-tokens/checkout")["tokens"]
    for key in ("tokenName", "type", "environment", "projects"):
        assert token[key] == listed[key] == asked[key]
    assert listed["secret"] != token["secret"]
    apart = {key: listed[key] for key in ("secret", "seenAt")}
    assert token | apart == listed

    # And all of it away again.
    call(terraform, "delete", f"api-tokens/{token['secret']}")
    call(terraform, "put", "projects/shop/access", {"roles": []})
    call(terraform, "delete", f"groups/{group['id']}")
    call(terraform, "delete", f"roles/{role['id']}")


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
