"""/api/admin/service-account: accounts for programs."""

import pytest
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from tests.support.cast import client

URL = "/api/admin/service-account"


def test_create_and_use(api):
    response = api["admin"].post(URL, {"username": "deployer", "name": "Deploys", "rootRole": 2})
    assert response.status_code == 201
    account = response.json()
    assert (account["accountType"], account["rootRole"]) == ("Service Account", 2)
    made = api["admin"].post(f"{URL}/{account['id']}/token", {"description": "ci"})
    assert made.status_code == 201
    me = client(made.json()["secret"]).get("/api/admin/user").json()
    assert me["user"]["username"] == "deployer"
    listed = api["admin"].get(f"{URL}/{account['id']}/token")
    assert [pat["description"] for pat in listed.json()["pats"]] == ["ci"]
    assert made.json()["secret"] not in listed.content.decode()
    assert AuditEvent.objects.filter(type="service-account-created", subject="deployer").exists()


def test_list(api, people):
    body = api["admin"].get(URL).json()
    assert [account["username"] for account in body["serviceAccounts"]] == ["service"]


def test_revoke_a_key(api, people):
    url = f"{URL}/{people['service'].pk}/token"
    made = api["admin"].post(url, {"description": "ci"}).json()
    assert api["admin"].delete(f"{url}/{made['id']}").status_code == 200
    assert client(made["secret"]).get("/api/admin/user").status_code == 401
    assert api["admin"].delete(f"{url}/{made['id']}").status_code == 404


def test_change_disable_delete(api, people):
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
def test_create_refused(api, body):
    assert api["admin"].post(URL, body).status_code == 400


def test_one_name_one_account(api, people):
    assert api["admin"].post(URL, {"username": "Viewer"}).status_code == 409


def test_admins_only(api, people):
    url = f"{URL}/{people['service'].pk}"
    for name in ("viewer", "editor", "service", "outsider"):
        answers = [
            api[name].get(URL),
            api[name].post(URL, {"username": "x"}),
            api[name].put(url, {"rootRole": 1}),
            api[name].delete(url),
            api[name].get(f"{url}/token"),
            api[name].post(f"{url}/token", {"description": "x"}),
            api[name].delete(f"{url}/token/1"),
        ]
        assert [answer.status_code for answer in answers] == [403] * 7


def test_a_person_is_none(api, people):
    url = f"{URL}/{people['viewer'].pk}"
    assert api["admin"].get(url).status_code == 404
    assert api["admin"].delete(url).status_code == 404
    assert api["admin"].post(f"{url}/token", {"description": "x"}).status_code == 404


def test_it_cannot_log_in(people):
    people["service"].set_password("correct horse battery")
    people["service"].save()
    response = Client().post("/login/", {"username": "service", "password": "correct horse battery"})
    assert response.status_code == 401
