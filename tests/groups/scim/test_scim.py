"""SCIM: who may, what is refused, what a deactivated person loses, and who owns groups."""

import pytest
from django.test import Client

from flagadmin.core.audit.models import AuditEvent
from groups.access import Caller
from groups.models import ApiToken, Group, GroupMembership, ScimSettings, User
from groups.permissions import BuiltIn
from groups.scim.actions import make_token, set_enabled
from tests.support.cast import client, make_group, make_user
from tests.support.cast import make_token as make_api_token
from tests.support.scim import ERROR, GROUP, GROUPS, USER, USERS, Provider

pytestmark = pytest.mark.django_db
SETTINGS = "/api/admin/scim-settings"


@pytest.fixture
def provider(db):
    return Provider()


@pytest.fixture
def service():
    """Imported late, as by the API: it takes seconds."""
    from groups.scim import service

    return service


def test_settings_are_the_admins(api):
    assert api["admin"].get(SETTINGS).json() == {
        "enabled": False,
        "assumeControlOfExisting": False,
        "hasToken": False,
    }
    assert api["admin"].post(SETTINGS, {"enabled": True}).json()["enabled"]
    secret = api["admin"].post(f"{SETTINGS}/generate-new-token").json()["token"]
    assert client(f"Bearer {secret}").get(USERS).status_code == 200
    assert ScimSettings.objects.get().seen_at
    assert secret not in str(list(ScimSettings.objects.values()))
    for name in ("viewer", "owner"):
        assert api[name].get(SETTINGS).status_code == 403
        assert api[name].post(f"{SETTINGS}/generate-new-token").status_code == 403
    events = AuditEvent.objects.filter(type="setting-updated", subject="SCIM")
    assert events.count() == 2
    assert secret not in str(list(events.values("before", "after")))


def test_its_token_reaches_nothing_else_and_no_other_token_reaches_it(api, provider):
    for path in ("/api/admin/projects", "/api/admin/user-admin", "/api/client/features", "/mcp"):
        assert client(provider.secret).get(path).status_code == 401
    for key in (None, "", "scim:nonsense", make_api_token("admin")):
        refused = client(key).get(USERS)
        assert (refused.status_code, refused["WWW-Authenticate"]) == (401, "Bearer")
        assert refused.json()["schemas"] == [ERROR]
    assert api["admin"].get(USERS).status_code == 401


def test_a_new_token_replaces_the_one_before_and_off_is_off(provider):
    make_token(caller=Caller.system())
    provider.send("get", USERS, status=401)
    again = Provider()
    set_enabled(False, caller=Caller.system())
    again.send("get", USERS, status=401)


def test_whoever_is_deactivated_loses_session_and_token_at_once_and_keeps_the_history(provider, shop):
    user = make_user("aisha", password="correct horse battery", root_role=BuiltIn.EDITOR)
    browser, secret = Client(), make_api_token("personal", user=user)
    browser.force_login(user)
    created = client(secret).post("/api/admin/projects/default/features", {"name": "mine"})
    assert created.status_code == 201
    assert browser.get("/account/").status_code == 200
    provider.patch(f"{USERS}/{user.pk}", {"op": "Replace", "path": "active", "value": False})
    assert browser.get("/account/").status_code == 302
    assert client(secret).get("/api/admin/projects").status_code == 401
    assert not ApiToken.objects.filter(user=user).exists()
    event = AuditEvent.objects.get(feature="mine")
    assert (event.actor_name, event.actor_id) == ("aisha", user.pk)
    provider.patch(f"{USERS}/{user.pk}", {"op": "Replace", "path": "active", "value": True})
    assert browser.get("/account/").status_code == 302
    assert client(secret).get("/api/admin/projects").status_code == 401
    assert {"SCIM"} == set(
        AuditEvent.objects.filter(type__in=["user-updated", "pat-deleted"]).values_list(
            "actor_name", flat=True
        )
    )


def test_the_last_admin_cannot_be_deactivated_or_deleted(provider):
    admin = make_user("admin", root_role=BuiltIn.ADMIN)
    refused = provider.patch(
        f"{USERS}/{admin.pk}", {"op": "Replace", "path": "active", "value": False}, status=403
    )
    assert "Nobody with the Admin role" in refused["detail"]
    provider.send("delete", f"{USERS}/{admin.pk}", status=403)
    assert User.objects.get().is_active


def test_roles_are_never_given_but_by_groups(provider):
    roles = {"roles": [{"value": "Admin"}], "rootRole": 1, "is_service": True}
    made = provider.send("post", USERS, {"schemas": [USER], "userName": "a"} | roles, status=201)
    user = User.objects.get(pk=made["id"])
    assert (user.root_role, user.is_service) == (None, False)


def test_service_accounts_are_not_there(provider):
    robot = make_user("robot", is_service=True)
    assert provider.find(USERS, 'userName eq "robot"') == []
    for method in ("get", "delete"):
        provider.send(method, f"{USERS}/{robot.pk}", status=404)
    provider.patch(f"{USERS}/{robot.pk}", {"op": "Replace", "path": "active", "value": False}, status=404)
    body = {"schemas": [USER], "userName": "robot"}
    assert provider.send("post", USERS, body, status=409)["scimType"] == "uniqueness"


def test_a_group_that_the_provider_has_changed_is_its_own(api, provider, people):
    group = make_group("Team", people["viewer"])
    provider.patch(
        f"{GROUPS}/{group.pk}",
        {"op": "Add", "path": "members", "value": [{"value": str(people["reader"].pk)}]},
        status=204,
    )
    assert Group.objects.get(pk=group.pk).scim_id == str(group.pk)
    refused = api["admin"].put(f"/api/admin/groups/{group.pk}", {"users": []})
    assert (
        refused.json()["details"][0]["message"]
        == "The members of a SCIM group come from the identity provider."
    )
    assert api["admin"].put(f"/api/admin/groups/{group.pk}", {"description": "Ours"}).status_code == 200
    [event] = AuditEvent.objects.filter(type="group-updated", actor_name="SCIM").order_by("-id")[:1]
    assert (event.before["users"], event.after["users"]) == ([], [people["reader"].pk])
    assert GroupMembership.objects.filter(group=group).count() == 2


@pytest.mark.parametrize(
    ("operations", "kind"),
    [
        ([], "invalidValue"),
        ([{"op": "explode", "path": "active"}], "invalidValue"),
        ([{"op": "replace", "path": "active", "value": "maybe"}], "invalidValue"),
        ([{"op": "replace", "path": "active[", "value": True}], "invalidPath"),
        ([{"op": "remove"}], "noTarget"),
        ([{"op": "remove", "path": "userName"}], "mutability"),
        ([{"op": "replace", "path": "id", "value": "7"}], "mutability"),
        ([{"op": "replace", "path": "userName", "value": 5}], "invalidValue"),
        ([{"op": "replace", "path": "userName", "value": "x" * 300}], "invalidValue"),
        ([{"op": "replace", "path": "emails", "value": [{"value": "no address"}]}], "invalidValue"),
        ([{"op": "replace", "value": "text"}], "invalidValue"),
        ([{"op": "replace", "value": {'emails[type eq "work"].value': "no address"}}], "invalidValue"),
        ([{"op": "replace", "value": {"emails[type eq": "a@b.org"}}], "invalidPath"),
    ],
)
def test_operations_that_are_refused_change_nothing(provider, operations, kind):
    user = make_user("aisha")
    refused = provider.patch(f"{USERS}/{user.pk}", *operations, status=400)
    assert (refused["scimType"], refused["status"]) == (kind, "400")
    assert User.objects.get().username == "aisha"


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ({"op": "add", "path": "members", "value": [{"value": "999"}]}, "invalidValue"),
        ({"op": "add", "path": "members", "value": [{"value": "abc"}]}, "invalidValue"),
        ({"op": "add", "path": "members", "value": ["'; DROP"]}, "invalidValue"),
        ({"op": "add", "path": "members", "value": 5}, "invalidValue"),
        ({"op": "remove", "path": 'members[display eq "a"]'}, "invalidFilter"),
        ({"op": "replace", "path": 'members[value eq "1"].value', "value": "2"}, "invalidValue"),
        ({"op": "replace", "path": "displayName", "value": ""}, "invalidValue"),
        ({"op": "replace", "value": ["x"]}, "invalidValue"),
    ],
)
def test_member_operations_that_are_refused_change_nothing(provider, operation, kind):
    group = make_group("Team", make_user("aisha"))
    assert provider.patch(f"{GROUPS}/{group.pk}", operation, status=400)["scimType"] == kind
    assert len(Group.objects.get(name="Team").member_ids()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "userName eq",
        "nope eq 1",
        "userName",
        'userName eq "a" and',
        "(" * 200,
        'title eq "x"',
        'active eq "maybe"',
        'meta.created eq "never"',
        'emails[type co "wor"]',
    ],
)
def test_filters_that_are_refused(provider, text):
    assert provider.send("get", USERS, filter=text, status=400)["scimType"] == "invalidFilter"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('userName sw "AI"', ["aisha"]),
        ('userName co "n"', ["ken"]),
        ('userName ew "EN" or displayName eq "aisha khan"', ["aisha", "ken"]),
        ('not (userName eq "ken")', ["aisha"]),
        ('userName ne "ken"', ["aisha"]),
        ('userName lt "B"', ["aisha"]),
        ('userName ge "KEN"', ["ken"]),
        ('not (emails.value gt "A")', ["ken"]),
        ('externalId gt "E"', ["ken"]),
        ('emails.value ne "a@b.org"', ["ken"]),
        ('not (emails.value eq "a@b.org")', ["ken"]),
        ('not (emails[type eq "work" and value eq "a@b.org"])', ["ken"]),
        ('not (emails.value co "@b")', ["ken"]),
        ('not (externalId eq "e")', ["aisha"]),
        ('externalId ne "e"', ["aisha"]),
        ("emails.value ne null", ["aisha"]),
        ("not (emails pr)", ["ken"]),
        ('not (externalId sw "e")', ["aisha"]),
        ('not (id eq "none")', ["aisha", "ken"]),
        ("externalId pr", ["ken"]),
        ('externalId eq "E"', []),
        ('emails[type eq "work" and value eq "A@b.org"]', ["aisha"]),
        ('emails.value co "@b"', ["aisha"]),
        ("active eq false", ["ken"]),
        ('active eq "true"', ["aisha"]),
        ('active ne "True"', ["ken"]),
        ('emails[type eq "home"].value eq "a@b.org"', []),
        ('emails[primary eq true and value eq "a@b.org"]', ["aisha"]),
        ('meta.created gt "2020-01-01T00:00:00"', ["aisha", "ken"]),
        ('meta.created gt "2020-01-01T00:00:00Z"', ["aisha", "ken"]),
        ('id eq "99999999999999999999"', []),
        (f'id eq "{"9" * 4_900}"', []),
        ('meta.created sw "1999-01-01T00:00:00Z"', []),
        ('userName co "%"', []),
        ('userName eq "\\ud800" or externalId co "\\u0000"', []),
        ('userName ne "\\udfff"', ["aisha", "ken"]),
    ],
)
def test_filters(provider, text, names):
    make_user("aisha", name="Aisha Khan", email="a@b.org")
    make_user("ken", external_id="e", is_active=False)
    assert [found["userName"] for found in provider.find(USERS, text)] == names


def test_a_group_is_found_once_however_many_members_meet_the_filter(provider):
    aisha, ken = make_user("aisha"), make_user("ken")
    make_group("Team", aisha, ken)
    for text in ("members pr", f'members eq "{aisha.pk}" or members eq "{ken.pk}"'):
        assert [group["displayName"] for group in provider.find(GROUPS, text)] == ["Team"]


def test_a_moment_as_a_number_is_no_failure(provider):
    assert provider.find(USERS, "meta.created eq 5") == []


def test_names_of_a_members_attributes_have_no_case(provider):
    group, aisha = make_group("Team"), make_user("aisha")
    provider.patch(
        f"{GROUPS}/{group.pk}",
        {"op": "Add", "path": "Members", "value": [{"Value": str(aisha.pk)}]},
        status=204,
    )
    assert Group.objects.get(name="Team").member_ids() == {aisha.pk}


@pytest.mark.parametrize("kind", ["Group", "group"])
def test_a_group_within_a_group_adds_no_person_with_its_id(provider, kind):
    group, aisha = make_group("Team"), make_user("aisha")
    member = {"value": str(aisha.pk), "type": kind}
    body = {"schemas": [GROUP], "displayName": "Team", "members": [member]}
    add = {"op": "add", "path": "members", "value": [member]}
    for refused in (
        provider.patch(f"{GROUPS}/{group.pk}", add, status=400),
        provider.send("put", f"{GROUPS}/{group.pk}", body, status=400),
        provider.send("post", GROUPS, body | {"displayName": "Other"}, status=400),
    ):
        assert refused["detail"] == "Members are people: groups within groups are not supported."
    assert not Group.objects.get().member_ids()
    provider.patch(f"{GROUPS}/{group.pk}", add | {"value": [member | {"type": "User"}]}, status=204)
    assert Group.objects.get().member_ids() == {aisha.pk}


@pytest.mark.parametrize("method", ["put", "patch"])
def test_a_user_who_is_deactivated_while_another_change_is_read_stays_so(
    provider, service, method, monkeypatch
):
    aisha, find_user = make_user("aisha"), service._find_user

    def find_while_others_change(key):
        found = find_user(key)
        User.objects.filter(pk=found.pk).update(is_active=False, external_id="e")
        return found

    monkeypatch.setattr(service, "_find_user", find_while_others_change)
    if method == "put":
        changed = provider.send(
            "put", f"{USERS}/{aisha.pk}", {"schemas": [USER], "userName": "ai", "externalId": "e"}
        )
    else:
        changed = provider.patch(f"{USERS}/{aisha.pk}", {"op": "replace", "path": "userName", "value": "ai"})
    assert (changed["userName"], changed["active"], changed["externalId"]) == ("ai", False, "e")


def test_a_group_that_is_renamed_while_a_change_of_members_is_read_keeps_its_name(
    provider, service, monkeypatch
):
    group, aisha, find_group = make_group("Team"), make_user("aisha"), service._find_group

    def find_while_others_rename(key, **options):
        found = find_group(key, **options)
        Group.objects.filter(pk=found.pk).update(name="Squad")
        return found

    monkeypatch.setattr(service, "_find_group", find_while_others_rename)
    add = {"op": "add", "path": "members", "value": [{"value": str(aisha.pk)}]}
    provider.patch(f"{GROUPS}/{group.pk}", add, status=204)
    assert Group.objects.get(name="Squad").member_ids() == {aisha.pk}


def test_what_a_patch_would_leave_is_refused_in_one_sentence(provider):
    aisha = make_user("aisha")
    refused = provider.patch(
        f"{USERS}/{aisha.pk}", {"op": "replace", "path": "active", "value": "maybe"}, status=400
    )
    assert refused["detail"] == "active: Input should be a valid boolean, unable to interpret input"


@pytest.mark.parametrize("key", ["0", "abc", "-1", "9" * 30, "1 OR 1=1", "%27"])
def test_ids_that_are_nobodys(provider, key):
    for path in (USERS, GROUPS):
        provider.send("get", f"{path}/{key}", status=404)
        provider.send("delete", f"{path}/{key}", status=404)
    provider.send("get", "/scim/v2/Schemas/urn:x", status=404)


@pytest.mark.parametrize(
    "body", [[], "x", 5, None, {"userName": ["a"]}, {"userName": "a", "active": 7}, {}, {"userName": " "}]
)
def test_bodies_that_are_refused(provider, body):
    assert provider.send("post", USERS, body, status=400)["schemas"] == [ERROR]
    assert not User.objects.exists()


def test_a_group_needs_a_name_of_its_own(provider):
    make_group("Team")
    for name, status in (("Team", 409), ("", 400), (None, 400)):
        provider.send("post", GROUPS, {"schemas": [GROUP], "displayName": name}, status=status)
    other = make_group("Other")
    rename = {"op": "replace", "path": "displayName", "value": "Team"}
    assert provider.patch(f"{GROUPS}/{other.pk}", rename, status=409)["scimType"] == "uniqueness"


def test_what_is_too_long_is_refused(provider):
    long, address = "a" * 256, f"{'a' * 60}@{'.'.join(['a' * 60] * 4)}.org"
    assert len(address) > 255
    user = {"schemas": [USER], "userName": "aisha", "externalId": long}
    refused = provider.send("post", USERS, user, status=400)
    assert refused["detail"] == "externalId: must have at most 255 characters, not 256"
    named = {"schemas": [USER], "userName": "aisha", "displayName": long}
    refused = provider.send("post", USERS, named, status=400)
    assert refused["detail"] == "name: must have at most 255 characters, not 256"
    emails = [{"value": address, "primary": True}]
    provider.send("post", USERS, user | {"externalId": "7", "emails": emails}, status=400)
    provider.send("post", GROUPS, {"schemas": [GROUP], "displayName": long}, status=400)
    group = make_group("Team")
    provider.patch(f"{GROUPS}/{group.pk}", {"op": "add", "path": "externalId", "value": long}, status=400)
    assert not User.objects.exists()


def test_attributes_choose_what_is_answered(provider):
    user = make_user("aisha", name="A")
    assert provider.send("get", f"{USERS}/{user.pk}", attributes="userName").keys() == {
        "schemas",
        "id",
        "userName",
    }
    assert provider.send("get", f"{USERS}/{user.pk}", attributes="a", excludedAttributes="b", status=400)
