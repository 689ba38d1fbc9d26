"""/api/admin/service-account: accounts for programs."""

import pytest
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from tests.support.cast import client

URL = "/api/admin/service-account"


def test_a_service_account_is_created_and_its_token_works(api):
    response = api["admin"].post(URL, {"username": "deployer", "name": "Deploys", "rootRole": 2})
    assert response.status_code == 201
    account = response.json()
    assert (account["accountType"], account["rootRole"]) == ("Service Account", 2)
    token = api["admin"].post(f"{URL}/{account['id']}/token", {"description": "ci"})
    assert token.status_code == 201
    me = client(token.json()["secret"]).get("/api/admin/user").json()
    assert me["user"]["username"] == "deployer"
    tokens = api["admin"].get(f"{URL}/{account['id']}/token")
    assert [pat["description"] for pat in tokens.json()["pats"]] == ["ci"]
    assert token.json()["secret"] not in tokens.content.decode()
    assert AuditEvent.objects.filter(type="service-account-created", subject="deployer").exists()


def test_service_accounts_are_listed_with_their_tokens(api, people):
    body = api["admin"].get(URL).json()
    assert [account["username"] for account in body["serviceAccounts"]] == ["service"]


def test_a_revoked_token_stops_working(api, people):
    url = f"{URL}/{people['service'].pk}/token"
    token = api["admin"].post(url, {"description": "ci"}).json()
    assert api["admin"].delete(f"{url}/{token['id']}").status_code == 200
    assert client(token["secret"]).get("/api/admin/user").status_code == 401
    assert api["admin"].delete(f"{url}/{token['id']}").status_code == 404


def test_a_service_account_is_changed_disabled_and_deleted(api, people):
    url = f"{URL}/{people['service'].pk}"
    service = api["service"]
    assert service.get("/api/admin/user").status_code == 200
    assert api["admin"].put(url, {"name": "Robot"}).json()["name"] == "Robot"
    assert api["admin"].get(url).json()["name"] == "Robot"
    assert api["admin"].put(url, {"isActive": False}).json()["isActive"] is False
    assert service.get("/api/admin/user").status_code == 401
    assert api["admin"].delete(url).status_code == 200
    assert api["admin"].get(url).status_code == 404
    types = AuditEvent.objects.filter(type__startswith="service-account").values_list("type", flat=True)
    assert sorted(types) == ["service-account-deleted", *["service-account-updated"] * 2]


@pytest.mark.parametrize("body", [{}, {"username": " "}, {"username": "x", "rootRole": 99}])
def test_a_malformed_service_account_is_refused(api, body):
    assert api["admin"].post(URL, body).status_code == 400


def test_a_taken_name_is_refused(api, people):
    assert api["admin"].post(URL, {"username": "Viewer"}).status_code == 409


def test_a_person_is_not_a_service_account(api, people):
    url = f"{URL}/{people['viewer'].pk}"
    assert api["admin"].get(url).status_code == 404
    assert api["admin"].delete(url).status_code == 404
    assert api["admin"].post(f"{url}/token", {"description": "x"}).status_code == 404


def test_a_service_account_cannot_log_in(people):
    people["service"].set_password("correct horse battery")
    people["service"].save()
    response = Client().post("/login/", {"username": "service", "password": "correct horse battery"})
    assert response.status_code == 401
