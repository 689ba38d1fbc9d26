"""/api/admin/groups: listing, creating and changing groups."""

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.models import Grant, Group, GroupMembership
from groups.permissions import BuiltIn
from tests.support.cast import make_user

URL = "/api/admin/groups"


def members(*users):
    return [{"user": {"id": user.pk}} for user in users]


def problems(response):
    assert response.status_code == 400, response.json()
    return {problem["path"]: problem["message"] for problem in response.json()["details"]}


@pytest.fixture
def team(people, shop):
    group = Group.objects.create(name="Team", description="d", created_by="admin")
    GroupMembership.objects.create(group=group, user=people["viewer"], created_by="admin")
    Grant.objects.create(group=group, project=shop, role_id=BuiltIn.MEMBER)
    return group


def test_creating_a_group_answers_201_and_stores_its_members(api, people):
    body = {
        "name": "Checkout",
        "description": "d",
        "rootRole": 2,
        "mappingsSSO": ["sso-a"],
        "users": members(people["viewer"], people["service"]),
    }
    response = api["admin"].post(URL, body)
    assert response.status_code == 201
    group = response.json()
    expected = {
        "name": "Checkout",
        "description": "d",
        "rootRole": 2,
        "mappingsSSO": ["sso-a"],
        "createdBy": "admin",
        "scimId": None,
        "projects": [],
        "userCount": 2,
    }
    assert group | expected == group
    assert [member["user"]["username"] for member in group["users"]] == ["viewer", "service"]
    assert group["users"][0]["createdBy"] == "admin"
    event = AuditEvent.objects.get(type="group-created")
    assert event.after["users"] == [people["viewer"].pk, people["service"].pk]


def test_its_root_role_counts_for_its_members(api, people):
    body = {"name": "Key keepers", "rootRole": "Admin", "users": members(people["outsider"])}
    assert api["outsider"].get(URL).status_code == 403
    api["admin"].post(URL, body)
    assert api["outsider"].get(URL).status_code == 200


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": ""}, "name"),
        ({"name": "   "}, "name"),
        ({"name": None}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"rootRole": 9999}, "rootRole"),
        ({"rootRole": 4}, "rootRole"),
        ({"users": [{"user": {"id": 999999}}]}, "users[0]"),
        ({"users": [{"user": {}}]}, "users[0].user.id"),
        ({"users": "all"}, "users"),
        ({"mappingsSSO": [""]}, "mappingsSSO[0]"),
    ],
)
def test_a_malformed_group_is_refused_with_its_path(api, change, path):
    problem_paths = problems(api["admin"].post(URL, {"name": "Checkout"} | change))
    assert any(key.startswith(path.split("[")[0]) for key in problem_paths), problem_paths
    assert not Group.objects.exists()


def test_a_name_that_is_taken_is_refused(api, team):
    response = api["admin"].post(URL, {"name": "Team"})
    assert (response.status_code, response.json()["name"]) == (409, "NameExistsError")
    other_group = api["admin"].post(URL, {"name": "Other"}).json()
    assert api["admin"].put(f"{URL}/{other_group['id']}", {"name": "Team"}).status_code == 409


def test_groups_are_listed_and_read_with_their_members(api, team):
    groups = api["admin"].get(URL).json()["groups"]
    group = api["admin"].get(f"{URL}/{team.pk}").json()
    assert groups == [group]
    assert (group["projects"], group["userCount"]) == (["shop"], 1)
    assert group["users"][0]["user"]["username"] == "viewer"


def test_the_list_takes_a_fixed_number_of_queries(api, people, django_assert_max_num_queries):
    for number in range(10):
        group = Group.objects.create(name=f"group {number}")
        GroupMembership.objects.create(group=group, user=people["viewer"])
    api["admin"].get("/api/admin/user")
    with django_assert_max_num_queries(7):
        assert len(api["admin"].get(URL).json()["groups"]) == 10


@pytest.mark.parametrize("unknown", ["999999", "-1", "0", "99999999999", "9" * 40])
def test_an_unknown_group_is_404(api, unknown):
    assert api["admin"].get(f"{URL}/{unknown}").status_code == 404
    assert api["admin"].put(f"{URL}/{unknown}", {"name": "x"}).status_code == 404


@pytest.mark.parametrize("nonsense", ["abc", "NaN", "1.5", "1e3", "+1", "%20", "٣", "0x1"])
def test_an_id_that_is_no_number_is_400(api, nonsense):
    response = api["admin"].get(f"{URL}/{nonsense}")
    assert (response.status_code, response.json()["name"]) == (400, "ValidationError")


def test_updating_replaces_the_members(api, people, team):
    body = {
        "name": "Squad",
        "description": "",
        "rootRole": None,
        "users": members(people["editor"], people["viewer"]),
    }
    group = api["admin"].put(f"{URL}/{team.pk}", body).json()
    assert (group["name"], group["description"], group["userCount"]) == ("Squad", "", 2)
    assert group["projects"] == ["shop"]
    event = AuditEvent.objects.get(type="group-updated")
    assert event.before["name"] == "Team"
    assert event.after["users"] == sorted([people["editor"].pk, people["viewer"].pk])


def test_omitted_properties_keep_their_values(api, people, team):
    api["admin"].put(f"{URL}/{team.pk}", {"description": "new"})
    group = api["admin"].get(f"{URL}/{team.pk}").json()
    assert (group["name"], group["description"], group["userCount"]) == ("Team", "new", 1)
    api["admin"].put(f"{URL}/{team.pk}", {"users": []})
    assert api["admin"].get(f"{URL}/{team.pk}").json()["users"] == []


def test_name_and_members_of_a_scim_group_cannot_be_changed(api, people, team):
    team.scim_id = "abc"
    team.save()
    url = f"{URL}/{team.pk}"
    assert "SCIM" in problems(api["admin"].put(url, {"name": "Squad"}))["name"]
    assert "SCIM" in problems(api["admin"].put(url, {"users": members(people["editor"])}))["users"]
    same = {"name": "Team", "users": members(people["viewer"]), "description": "new", "rootRole": 3}
    assert api["admin"].put(url, same).json()["description"] == "new"


def test_the_last_admins_keep_their_group(api, people):
    people["admin"].root_role = None
    people["admin"].save()
    group = Group.objects.create(name="Admins", root_role_id=BuiltIn.ADMIN)
    GroupMembership.objects.create(group=group, user=people["admin"])
    url = f"{URL}/{group.pk}"
    for change in ({"users": []}, {"rootRole": None}, {"rootRole": 2}):
        response = api["admin_token"].put(url, change)
        assert (response.status_code, response.json()["name"]) == (403, "InvalidOperationError")
    second_admin = make_user("second", root_role=BuiltIn.ADMIN)
    response = api["admin"].put(url, {"users": members(second_admin)})
    assert "You would lose the Admin role" in response.json()["message"]
    assert api["admin_token"].put(url, {"users": members(second_admin)}).status_code == 200
