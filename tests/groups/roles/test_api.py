"""/api/admin/roles and /api/admin/permissions."""

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.models import Grant, Group, Role
from groups.permissions import BuiltIn, Permission
from projects.models import Environment

URL = "/api/admin/roles"
SWITCHER = {
    "name": "Switcher",
    "description": "switches",
    "type": "custom",
    "permissions": [
        {"name": "UPDATE_FEATURE_ENVIRONMENT", "environment": "development"},
        {"name": "CREATE_FEATURE"},
    ],
}


@pytest.fixture
def switcher(api):
    return api["admin"].post(URL, SWITCHER).json()["roles"]


def held(role):
    return [(permission["name"], permission.get("environment")) for permission in role["permissions"]]


def problems(response):
    assert response.status_code == 400, response.json()
    return {problem["path"]: problem["message"] for problem in response.json()["details"]}


def test_roles_are_listed_built_in_ones_first(api):
    roles = api["admin"].get(URL).json()["roles"]
    assert [(role["id"], role["name"], role["type"]) for role in roles] == [
        (1, "Admin", "root"),
        (2, "Editor", "root"),
        (3, "Viewer", "root"),
        (4, "Owner", "project"),
        (5, "Member", "project"),
        (6, "Reader", "project"),
    ]


def test_a_role_is_read_with_its_permissions(api):
    (admin,) = api["admin"].get(f"{URL}/1").json()["permissions"]
    assert admin == {"id": Permission.ADMIN.id, "name": "ADMIN", "displayName": "Admin", "type": "root"}
    assert ("CREATE_FEATURE", None) in held(api["admin"].get(f"{URL}/5").json())
    assert api["admin"].get(f"{URL}/9999").status_code == 404
    assert api["admin"].get(f"{URL}/abc").status_code == 400


def test_a_role_is_created(api):
    response = api["admin"].post(URL, SWITCHER)
    assert (response.status_code, response.json()["version"]) == (200, 1)
    switcher = response.json()["roles"]
    assert switcher["id"] > 6
    assert held(switcher) == [("CREATE_FEATURE", None), ("UPDATE_FEATURE_ENVIRONMENT", "development")]
    assert api["admin"].get(f"{URL}/{switcher['id']}").json() == switcher
    event = AuditEvent.objects.get(type="role-created")
    assert held(event.after) == held(switcher)


def test_a_root_role_is_created(api):
    body = {"name": "Segmenter", "type": "root-custom", "permissions": [{"name": "CREATE_SEGMENT"}]}
    assert api["admin"].post(URL, body).json()["roles"]["type"] == "root-custom"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": ""}, "name"),
        ({"type": "root"}, "type"),
        ({"type": "project"}, "type"),
        ({"permissions": [{"name": "FLY"}]}, "permissions[0]"),
        ({"permissions": [{"name": "ADMIN"}]}, "permissions[0]"),
        ({"permissions": [{"name": "CREATE_FEATURE"}, {"name": "CREATE_SEGMENT"}]}, "permissions[1]"),
        ({"permissions": [{"name": "CREATE_FEATURE", "environment": "production"}]}, "permissions[0]"),
        ({"permissions": [{"name": "UPDATE_FEATURE_STRATEGY", "environment": "mars"}]}, "permissions[0]"),
        ({"type": "root-custom"}, "permissions[0]"),
        ({"permissions": [{}]}, "permissions[0].name"),
    ],
)
def test_a_malformed_role_is_refused(api, change, path):
    assert path in problems(api["admin"].post(URL, SWITCHER | change))
    assert not Role.objects.filter(name="Switcher").exists()


def test_a_name_that_is_taken_is_refused(api, switcher):
    assert api["admin"].post(URL, SWITCHER).status_code == 409
    assert api["admin"].post(f"{URL}/validate", SWITCHER).status_code == 409
    assert api["admin"].post(f"{URL}/validate", SWITCHER | {"name": "New"}).status_code == 200
    assert api["admin"].put(f"{URL}/{switcher['id']}", {"name": "Member"}).status_code == 409
    assert api["admin"].put(f"{URL}/{switcher['id']}", {"name": "Switcher"}).status_code == 200


def test_a_role_is_updated(api, switcher):
    url = f"{URL}/{switcher['id']}"
    body = {"description": "new", "permissions": [{"name": "DELETE_FEATURE"}]}
    role = api["admin"].put(url, body).json()["roles"]
    assert (role["name"], role["description"]) == ("Switcher", "new")
    assert held(role) == [("DELETE_FEATURE", None)]
    assert held(api["admin"].put(url, {"name": "Deleter"}).json()["roles"]) == held(role)
    event = AuditEvent.objects.filter(type="role-updated").last()
    assert held(event.before) == held(switcher)
    assert "permissions[0]" in problems(api["admin"].put(url, {"permissions": [{"name": "FLY"}]}))


@pytest.mark.parametrize("role", list(BuiltIn))
def test_built_in_roles_cannot_be_changed(api, role):
    for response in (api["admin"].put(f"{URL}/{role}", {"name": "x"}), api["admin"].delete(f"{URL}/{role}")):
        assert (response.status_code, response.json()["name"]) == (403, "InvalidOperationError")


def test_an_unused_role_is_deleted(api, switcher):
    url = f"{URL}/{switcher['id']}"
    assert api["admin"].delete(url).status_code == 200
    assert api["admin"].delete(url).status_code == 404
    assert held(AuditEvent.objects.get(type="role-deleted").before) == held(switcher)


def test_a_role_in_use_is_not_deleted(api, people, shop, switcher):
    group = Group.objects.create(name="Team")
    for holder in ({"user": people["viewer"]}, {"user": people["service"]}, {"group": group}):
        Grant.objects.create(project=shop, role_id=switcher["id"], **holder)
    response = api["admin"].delete(f"{URL}/{switcher['id']}")
    record = response.json()
    assert (response.status_code, record["name"]) == (400, "RoleInUseError")
    assert (record["users"], record["serviceAccounts"], record["groups"]) == (1, 1, 1)
    assert "granted to 1 person, 1 service account, 1 group" in record["message"]


def test_a_root_role_in_use_is_not_deleted(api, people):
    role = Role.objects.create(name="Auditor", type="root-custom")
    Group.objects.create(name="Auditors", root_role=role)
    assert api["admin"].delete(f"{URL}/{role.pk}").json()["groups"] == 1
    people["viewer"].root_role = role
    people["viewer"].save()
    assert api["admin"].delete(f"{URL}/{role.pk}").json()["users"] == 1


def test_deleting_an_environment_deletes_its_permissions(api, people, callers, shop, switcher):
    Grant.objects.create(project=shop, user=people["outsider"], role_id=switcher["id"])
    Environment.objects.create(name="temporary")
    body = {"permissions": [{"name": "UPDATE_FEATURE_ENVIRONMENT", "environment": "temporary"}]}
    api["admin"].put(f"{URL}/{switcher['id']}", body)
    Environment.objects.get(name="temporary").delete()
    caller = callers("outsider")
    assert not caller.can(Permission.UPDATE_FEATURE_ENVIRONMENT, project="shop", environment="production")


def test_permissions_are_listed_by_scope(api):
    permissions = api["outsider"].get("/api/admin/permissions").json()["permissions"]
    admin = {"id": Permission.ADMIN.id, "name": "ADMIN", "displayName": "Admin", "type": "root"}
    assert admin in permissions["root"]
    assert len({permission.id for permission in Permission}) == len(Permission)
    assert "DELETE_PROJECT" in [permission["name"] for permission in permissions["project"]]
    assert [environment["name"] for environment in permissions["environments"]] == [
        "development",
        "production",
    ]
    total = (
        len(permissions["root"])
        + len(permissions["project"])
        + len(permissions["environments"][0]["permissions"])
    )
    assert total == len(Permission)
