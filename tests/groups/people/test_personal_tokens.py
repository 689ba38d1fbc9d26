"""/api/admin/user/tokens: the user's own personal tokens."""

import pytest

from flagadmin.core.audit.models import AuditEvent
from tests.support.cast import client

URL = "/api/admin/user/tokens"


@pytest.mark.parametrize("name", ["admin", "viewer", "outsider", "service"])
def test_everybody_creates_their_own_tokens(api, people, name):
    response = api[name].post(URL, {"description": "laptop", "expiresAt": "2099-01-01T00:00:00Z"})
    assert response.status_code == 201
    token = response.json()
    assert token["secret"].startswith("user:")
    assert (token["userId"], token["expiresAt"]) == (people[name].pk, "2099-01-01T00:00:00.000Z")
    assert client(token["secret"]).get(URL).status_code == 200


def test_the_list_has_no_secrets(api):
    secret = api["viewer"].post(URL, {"description": "laptop"}).json()["secret"]
    response = api["viewer"].get(URL)
    assert "laptop" in [pat["description"] for pat in response.json()["pats"]]
    assert secret not in response.content.decode()
    assert "laptop" not in api["editor"].get(URL).content.decode()


def test_a_token_has_the_rights_of_its_account(api):
    secret = api["viewer"].post(URL, {"description": "laptop"}).json()["secret"]
    assert client(secret).get("/api/admin/api-tokens").status_code == 403


def test_a_name_that_is_taken_is_refused(api):
    assert api["viewer"].post(URL, {"description": "laptop"}).status_code == 201
    response = api["viewer"].post(URL, {"description": "laptop"})
    assert (response.status_code, response.json()["name"]) == (409, "NameExistsError")
    assert api["editor"].post(URL, {"description": "laptop"}).status_code == 201


@pytest.mark.parametrize("body", [{}, {"description": ""}, {"description": "x", "expiresAt": "never"}])
def test_a_malformed_token_is_refused(api, body):
    assert api["viewer"].post(URL, body).status_code == 400


def test_an_admin_token_has_no_personal_tokens(api):
    for response in (api["admin_token"].get(URL), api["admin_token"].post(URL, {"description": "x"})):
        assert (response.status_code, response.json()["name"]) == (403, "NoAccessError")


def test_only_own_tokens_are_revoked(api, people):
    token = api["viewer"].post(URL, {"description": "laptop"}).json()
    assert api["editor"].delete(f"{URL}/{token['id']}").status_code == 404
    assert api["viewer"].delete(f"{URL}/{token['id']}").status_code == 200
    assert client(token["secret"]).get(URL).status_code == 401
    assert api["viewer"].delete(f"{URL}/{token['id']}").status_code == 404
    assert api["viewer"].delete(f"{URL}/abc").status_code == 400
    types = list(AuditEvent.objects.order_by("id").values_list("type", flat=True))
    assert types == ["pat-created", "pat-deleted"]
    assert token["secret"] not in repr(list(AuditEvent.objects.values()))
