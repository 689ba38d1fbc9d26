"""What Okta sends, in its order: PUT of whole users, PATCH without a path, groups pushed with their members."""

import pytest

from groups.models import Group, User
from tests.support.scim import GROUP, GROUPS, USER, USERS, Provider

pytestmark = pytest.mark.django_db
WHOLE = {
    "schemas": [USER],
    "userName": "ken@example.org",
    "name": {"givenName": "Ken", "familyName": "Adams"},
    "emails": [{"primary": True, "value": "ken@example.org", "type": "work"}],
    "displayName": "Ken Adams",
    "locale": "en-US",
    "externalId": "00ujl29u0le5T6Aj10h7",
    "groups": [],
    "password": "1mz050nq",
    "active": True,
}


@pytest.fixture
def okta(db):
    return Provider()


def test_a_user_who_is_created_replaced_and_deactivated_by_put(okta):
    assert okta.send("get", USERS, startIndex="1", count="2")["Resources"] == []
    assert okta.send("get", USERS, filter='userName eq "ken@example.org"', startIndex="1", count="100")
    created = okta.send("post", USERS, WHOLE, status=201)
    assert not User.objects.get().has_usable_password()
    path = f"{USERS}/{created['id']}"
    read = okta.send("get", path)
    assert read["name"] == {"formatted": "Ken Adams", "givenName": "Ken", "familyName": "Adams"}

    renamed = WHOLE | {"id": created["id"], "displayName": "Kenneth Adams", "meta": created["meta"]}
    assert okta.send("put", path, renamed)["displayName"] == "Kenneth Adams"
    off = okta.send("put", path, renamed | {"active": False})
    assert off["active"] is False
    assert User.objects.get().is_active is False
    assert okta.patch(path, {"op": "replace", "value": {"active": True}})["active"] is True
    bare = {"schemas": [USER], "userName": "ken@example.org"}
    assert okta.send("put", path, bare).keys() == {"schemas", "id", "userName", "active", "meta"}


def test_pages_have_each_user_once(okta):
    for number in range(5):
        okta.send("post", USERS, WHOLE | {"userName": f"u{number}", "emails": []}, status=201)
    pages = [okta.send("get", USERS, startIndex=str(start), count="2") for start in (1, 3, 5)]
    assert [page["itemsPerPage"] for page in pages] == [2, 2, 1]
    assert {page["totalResults"] for page in pages} == {5}
    names = [user["userName"] for page in pages for user in page["Resources"]]
    assert names == [f"u{number}" for number in range(5)]
    assert okta.send("get", USERS, count="0")["totalResults"] == 5
    assert okta.send("get", USERS, startIndex=str(2**70), count=str(2**70))["Resources"] == []


def test_a_group_that_is_pushed_with_its_members(okta):
    ken = okta.send("post", USERS, WHOLE, status=201)["id"]
    member = {"value": ken, "display": "ken@example.org"}
    body = {"schemas": [GROUP], "displayName": "Everyone", "members": [member]}
    created = okta.send("post", GROUPS, body, status=201)
    assert created["members"] == [member]
    path = f"{GROUPS}/{created['id']}"
    okta.patch(path, {"op": "replace", "value": {"id": created["id"], "displayName": "All"}}, status=204)
    okta.patch(path, {"op": "replace", "path": "members", "value": []}, status=204)
    assert Group.objects.get(name="All").member_ids() == set()
    assert okta.send("put", path, body)["members"] == [member]
    okta.patch(
        path,
        {"op": "remove", "path": f'members[value eq "{ken}"]'},
        {"op": "add", "path": "members", "value": [{"value": ken}]},
        status=204,
    )
    assert len(Group.objects.get().member_ids()) == 1
