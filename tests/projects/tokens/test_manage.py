"""Listing, changing and revoking API tokens."""

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.models import ApiToken, Role, RolePermission
from tests.support.cast import client, make_project, make_token
from tests.support.for_each import for_each

URL = "/api/admin/api-tokens"


@pytest.fixture
def tokens(shop):
    """Name → secret: one of each kind, all for shop but the admin one."""
    return {
        "sdk": make_token("backend", projects=["shop"], environment="production", name="sdk"),
        "web": make_token("frontend", projects=["shop"], environment="production", name="web"),
        "both": make_token("backend", projects=["default", "shop"], environment="production", name="both"),
        "every": make_token("backend", environment="production", name="every"),
        "ops": make_token("admin", name="ops"),
    }


def names(response):
    assert response.status_code == 200, response.json()
    return {token["tokenName"] for token in response.json()["tokens"]}


def test_lists_have_what_the_caller_may_read_and_the_start_of_keys(api, tokens):
    assert names(api["admin"].get(URL)) == set(tokens)
    assert names(api["editor"].get(URL)) == {"sdk", "web", "both", "every"}

    by_name = {token["tokenName"]: token for token in api["admin"].get(URL).json()["tokens"]}
    prefix = by_name["sdk"]["secret"]
    assert prefix.endswith("…")
    assert tokens["sdk"].startswith(prefix[:-1])
    assert len(prefix) < 30

    assert names(api["admin"].get(f"{URL}/web")) == {"web"}
    assert names(api["editor"].get(f"{URL}/ops")) == set()

    url = "/api/admin/projects/shop/api-tokens"
    for name in ("member", "owner", "admin"):
        assert names(api[name].get(url)) == {"sdk", "web", "both"}

    listed = api["member"].get(url).json()["tokens"]
    assert {token["tokenName"]: token["projects"] for token in listed}["both"] == ["shop"]


@for_each("key", ["id", "secret", "prefix"])
def test_a_token_is_revoked_by_id_secret_or_prefix(api, tokens, key):
    token = ApiToken.objects.get(name="sdk")
    key_in_path = {"id": token.pk, "secret": tokens["sdk"], "prefix": token.prefix + "…"}[key]
    assert client(tokens["sdk"]).get("/api/admin/x").status_code == 404
    response = api["admin"].delete(f"{URL}/{key_in_path}")
    assert (response.status_code, response.content) == (200, b"")
    assert client(tokens["sdk"]).get("/api/admin/x").status_code == 401
    event = AuditEvent.objects.get(type="api-token-deleted")
    assert event.project == "shop"
    assert event.before["tokenName"] == "sdk"
    assert tokens["sdk"] not in repr(vars(event))


def test_a_personal_token_is_not_revoked_here(api, tokens):
    api["viewer"].get(URL)
    personal = ApiToken.objects.filter(kind="personal").first()
    assert api["admin"].delete(f"{URL}/{personal.pk}").status_code == 404
    assert ApiToken.objects.filter(pk=personal.pk).exists()


def test_revoking_what_does_not_exist(api, tokens):
    """A script may run again. Without the Admin role, it might be a token that the caller cannot see."""
    for unknown in ("999999", "9" * 40, "nosuch", "user:abc"):
        assert api["admin"].delete(f"{URL}/{unknown}").status_code == 200
        assert api["viewer"].delete(f"{URL}/{unknown}").status_code == 403
    assert not AuditEvent.objects.filter(type="api-token-deleted").exists()


def test_revoking_one_kind_gives_no_power_over_another(api, people, tokens):
    role = Role.objects.create(name="Revoker", type="root-custom")
    RolePermission.objects.create(role=role, permission="DELETE_CLIENT_API_TOKEN")
    RolePermission.objects.create(role=role, permission="READ_FRONTEND_API_TOKEN")
    people["viewer"].root_role = role
    people["viewer"].save()
    ids = dict(ApiToken.objects.values_list("name", "id"))
    assert api["viewer"].delete(f"{URL}/{ids['ops']}").status_code == 404
    assert api["viewer"].delete(f"{URL}/{ids['web']}").status_code == 403
    assert api["viewer"].delete(f"{URL}/{ids['sdk']}").status_code == 200


def test_an_expiry_is_set_removed_and_refused(api, tokens):
    url = f"{URL}/{tokens['sdk']}"
    assert api["admin"].put(url, {"expiresAt": "2020-01-01T00:00:00Z"}).status_code == 200
    assert client(tokens["sdk"]).get("/api/admin/x").status_code == 401
    assert api["admin"].put(url, {"expiresAt": None}).status_code == 200
    assert client(tokens["sdk"]).get("/api/admin/x").status_code == 404
    events = AuditEvent.objects.filter(type="api-token-updated")
    assert {(e.before["expiresAt"], e.after["expiresAt"]) for e in events} == {
        (None, "2020-01-01T00:00:00.000Z"),
        ("2020-01-01T00:00:00.000Z", None),
    }

    assert api["admin"].put(url, {}).status_code == 400
    assert api["admin"].put(url, {"expiresAt": "soon"}).status_code == 400
    assert api["admin"].put(f"{URL}/12345678", {"expiresAt": None}).status_code == 404


def test_a_project_revokes_its_own_tokens_only(api, tokens):
    token = ApiToken.objects.get(name="sdk")
    url = "/api/admin/projects/shop/api-tokens"
    for status in (200, 404):
        assert api["member"].delete(f"{url}/{token.pk}").status_code == status

    ids = dict(ApiToken.objects.values_list("name", "id"))
    assert api["owner"].delete(f"{url}/{ids['both']}").status_code == 403
    assert api["owner"].delete(f"{url}/{ids['every']}").status_code == 404
    assert api["admin"].delete(f"{url}/{ids['both']}").status_code == 200

    make_project("other")
    secret = make_token("backend", projects=["other"], environment="production", name="theirs")
    assert api["owner"].delete(f"{url}/{secret}").status_code == 404
