"""What Microsoft Entra sends, in its order: test of the connection, users, groups, soft and hard deletion."""

import pytest

from groups.models import Group, User
from tests.support.scim import ENTERPRISE, ERROR, GROUP, GROUPS, LIST, USER, USERS, Provider

pytestmark = pytest.mark.django_db
MEMBER = 'members[value eq "{}"]'


@pytest.fixture
def entra(db):
    return Provider()


def make_user(entra, name="aisha@corp.local", **values):
    body = {
        "schemas": [USER, ENTERPRISE],
        "externalId": name.partition("@")[0],
        "userName": name,
        "active": True,
        "displayName": "Aisha Khan",
        "emails": [{"primary": True, "type": "work", "value": name}],
        "meta": {"resourceType": "User"},
        "name": {"formatted": "Aisha Khan", "familyName": "Khan", "givenName": "Aisha"},
        "roles": [],
        ENTERPRISE: {"department": "Checkout"},
    }
    return entra.send("post", USERS, body | values, status=201)


def test_the_test_of_the_connection_finds_nobody(entra):
    nobody = 'userName eq "0a8fdb4c-3f3e-4a4e-9c55-4f4c4b3d2a10"'
    assert entra.send("get", USERS, filter=nobody) == {
        "schemas": [LIST],
        "totalResults": 0,
        "startIndex": 1,
        "itemsPerPage": 0,
        "Resources": [],
    }
    for path in ("Schemas", "ResourceTypes"):
        assert entra.send("get", f"/scim/v2/{path}")["totalResults"] == 2
    assert entra.send("get", f"/scim/v2/Schemas/{USER}")["name"] == "User"
    assert entra.send("get", "/scim/v2/ResourceTypes/Group")["endpoint"] == "/Groups"
    assert entra.send("get", "/scim/v2/ServiceProviderConfig")["patch"] == {"supported": True}


def test_a_user_from_creation_to_deletion(entra):
    created = make_user(entra)
    path = f"{USERS}/{created['id']}"
    assert created["meta"]["location"] == f"http://testserver{path}"
    assert created["externalId"] == "aisha"
    user = User.objects.get(username="aisha@corp.local")
    assert (user.name, user.email, user.root_role) == ("Aisha Khan", "aisha@corp.local", None)
    assert not user.has_usable_password()

    assert entra.send("get", path) == created
    for text in ('userName eq "AISHA@corp.local"', 'externalId eq "aisha"', f'id eq "{created["id"]}"'):
        assert [found["id"] for found in entra.find(USERS, text)] == [created["id"]]
    assert entra.find(USERS, 'userName eq "aisha@corp.local" and active eq true')
    assert not entra.find(USERS, 'externalId eq "AISHA"')

    # In capitals, booleans as text, paths with filters, and attributes that are not stored.
    changed = entra.patch(
        path,
        {"op": "Replace", "path": "displayName", "value": "Aisha K"},
        {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "ak@corp.local"},
        {"op": "Add", "path": f"{ENTERPRISE}:department", "value": "Search"},
        {"op": "Add", "value": {"name.givenName": "A.", "title": "Lead"}},
    )
    assert (changed["displayName"], changed["emails"][0]["value"]) == ("Aisha K", "ak@corp.local")
    assert changed["name"]["givenName"] == "A."

    # Without a path, names may be paths, with filters too.
    changed = entra.patch(
        path,
        {
            "op": "Replace",
            "value": {
                'emails[type eq "work"].value': "aisha.k@corp.local",
                'phoneNumbers[type eq "mobile"].value': "555",
                "name.familyName": "Khan-Adams",
            },
        },
        {"op": "Add", "value": {'emails[type eq "work"].primary': True}},
    )
    assert changed["emails"] == [{"value": "aisha.k@corp.local", "type": "work", "primary": True}]
    assert changed["name"]["familyName"] == "Khan-Adams"

    disabled = entra.patch(path, {"op": "Replace", "path": "active", "value": "False"})
    assert disabled["active"] is False
    assert entra.find(USERS, 'userName eq "aisha@corp.local"')[0]["active"] is False
    assert entra.patch(path, {"op": "Replace", "value": {"active": True}})["active"] is True

    renamed = entra.patch(path, {"op": "replace", "path": "userName", "value": "aisha.khan@corp.local"})
    assert renamed["userName"] == "aisha.khan@corp.local"
    entra.send("delete", path, status=204)
    assert entra.send("get", path, status=404)["status"] == "404"


def test_a_name_that_is_taken_is_409_and_found_by_its_name(entra):
    make_user(entra)
    refused = entra.send("post", USERS, {"schemas": [USER], "userName": "Aisha@Corp.local"}, status=409)
    assert (refused["schemas"], refused["scimType"]) == ([ERROR], "uniqueness")
    other = make_user(entra, "b@corp.local")
    path = f"{USERS}/{other['id']}"
    rename = {"op": "Replace", "path": "userName", "value": "aisha@corp.local"}
    assert entra.patch(path, rename, status=409)["scimType"] == "uniqueness"


def test_an_account_that_was_there_before_is_found_and_taken_over(entra):
    User.objects.create(username="old", email="old@corp.local", name="Old")
    [found] = entra.find(USERS, 'userName eq "old"')
    entra.patch(f"{USERS}/{found['id']}", {"op": "Add", "path": "externalId", "value": "e-7"})
    assert User.objects.get(username="old").external_id == "e-7"


def test_a_group_from_creation_to_deletion(entra):
    people = [make_user(entra, f"u{n}@corp.local")["id"] for n in range(3)]
    body = {"schemas": [GROUP], "externalId": "g-1", "displayName": "Checkout", "members": []}
    created = entra.send("post", GROUPS, body, status=201)
    path = f"{GROUPS}/{created['id']}"
    assert entra.send("get", path, excludedAttributes="members")["displayName"] == "Checkout"
    [found] = entra.send("get", GROUPS, excludedAttributes="members", filter='displayName eq "Checkout"')[
        "Resources"
    ]
    assert found["id"] == created["id"]

    add = {"op": "Add", "path": "members", "value": [{"value": key} for key in people]}
    entra.patch(path, add, status=204)
    group = Group.objects.get(name="Checkout")
    assert [str(key) for key in sorted(group.member_ids())] == people
    assert [member["value"] for member in entra.send("get", path)["members"]] == people
    assert "members" not in entra.send("get", path, excludedAttributes="members")

    entra.patch(path, {"op": "Remove", "path": MEMBER.format(people[0])}, status=204)
    entra.patch(path, {"op": "Remove", "path": "members", "value": [{"value": people[1]}]}, status=204)
    assert [str(key) for key in group.member_ids()] == people[2:]
    entra.patch(path, {"op": "Replace", "path": "displayName", "value": "Paying"}, status=204)
    assert Group.objects.get().name == "Paying"
    assert entra.find(GROUPS, f'members eq "{people[2]}"')[0]["displayName"] == "Paying"
    entra.send("delete", path, status=204)
    assert not Group.objects.exists()
