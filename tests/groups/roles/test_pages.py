"""/access/roles/: permissions and holders of a role, creating and deleting roles."""

import re
from pathlib import Path

import pytest

from groups.access import Caller
from groups.models import Grant, Group, GroupMembership, Role, RolePermission, User
from groups.permissions import BuiltIn
from groups.roles.holders import read_holders
from groups.roles.subjects import NOT_USED, SUBJECTS
from tests.support.page_text import page_text

ROOTS = ("flagadmin", "integrations", "importer", "releases", "sdk", "playground", "projects", "groups")


@pytest.fixture
def deployer(db):
    role = Role.objects.create(name="Deployer", type="custom")
    RolePermission.objects.create(
        role=role, permission="UPDATE_FEATURE_ENVIRONMENT", environment_id="production"
    )
    return role


def held(role):
    return set(role.permissions.values_list("permission", "environment_id"))


def test_a_role_shows_the_projects_that_use_it(browse, people, shop):
    group = Group.objects.create(name="Team")
    Grant.objects.create(group=group, project=shop, role_id=BuiltIn.MEMBER.value)
    Grant.objects.create(user=people["service"], project=shop, role_id=BuiltIn.MEMBER.value)

    answer = browse("admin").get("/access/roles/5/?format=csv")
    page = browse("admin").get("/access/roles/5/")

    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert lines == ["Project,Users,Service accounts,Groups", "shop,1,1,1"]
    assert "/api/admin/projects/roles/5/access" in page.text
    assert "Create flags Also by cloning and importing." in page_text(page)


def test_a_root_role_shows_who_holds_it(browse, people):
    page = page_text(browse("admin").get(f"/access/roles/{BuiltIn.VIEWER.value}/"))

    assert "viewer user everywhere" in page
    assert "Read-only access." in page


def test_a_built_in_role_is_not_changed(browse, people):
    admin = browse("admin")

    assert "/access/roles/5/edit/" not in admin.get("/access/roles/5/").text
    response = admin.get("/access/roles/5/edit/")
    assert response.status_code == 403
    assert "Member is a built-in role and cannot be changed." in page_text(response)
    assert admin.post("/access/roles/5/delete/").status_code == 403


def test_creating_with_permissions_by_environment(browse, people):
    chosen = ["CREATE_FEATURE", "UPDATE_FEATURE_ENVIRONMENT development", "UPDATE_FEATURE_STRATEGY"]

    answer = browse("admin").post("/access/roles/new/", {"name": "Helper", "permissions": chosen})

    role = Role.objects.get(name="Helper")
    assert answer["Location"] == f"/access/roles/{role.pk}/"
    assert role.type == "custom"
    assert held(role) == {
        ("CREATE_FEATURE", None),
        ("UPDATE_FEATURE_ENVIRONMENT", "development"),
        ("UPDATE_FEATURE_STRATEGY", None),
    }


def test_a_root_role_has_root_permissions(browse, people):
    admin, address = browse("admin"), "/access/roles/new/?type=root-custom"

    assert 'value="CREATE_SEGMENT"' in admin.get(address).text
    assert 'value="ADMIN"' not in admin.get(address).text
    assert admin.post(address, {"name": "X", "permissions": ["CREATE_FEATURE"]}).status_code == 400
    admin.post(address, {"name": "Segmenter", "permissions": ["CREATE_SEGMENT"]})
    assert Role.objects.get(name="Segmenter").type == "root-custom"


def test_changing_shows_what_is_held_and_replaces_it(browse, people, deployer):
    admin, address = browse("admin"), f"/access/roles/{deployer.pk}/edit/"

    page = admin.get(address).text
    admin.post(address, {"name": "Deployer", "permissions": ["UPDATE_FEATURE"]})

    assert (
        'value="UPDATE_FEATURE_ENVIRONMENT production" aria-label="Switch flags in production" checked'
        in page
    )
    assert held(deployer) == {("UPDATE_FEATURE", None)}


def test_a_role_in_use_is_not_deleted_and_says_by_how_many(browse, people, shop, deployer):
    Grant.objects.create(user=people["member"], project=shop, role=deployer)
    admin, address = browse("admin"), f"/access/roles/{deployer.pk}/delete/"

    assert "Deployer is granted to 1 person. Revoke it from them first." in page_text(admin.get(address))
    response = admin.post(address)
    assert response.status_code == 400
    assert "Revoke it from them first" in page_text(response)
    assert Role.objects.filter(pk=deployer.pk).exists()


def test_a_built_in_role_does_not_ask_to_revoke_it_first(browse, people, shop):
    text = page_text(browse("admin").get(f"/access/roles/{BuiltIn.MEMBER}/delete/"))
    assert "Member is a built-in role and cannot be deleted." in text
    assert "Revoke it" not in text


def test_disabled_holders_are_marked(browse, people, shop, deployer):
    people["member"].is_active = False
    people["member"].save()
    Grant.objects.create(user=people["member"], project=shop, role=deployer)
    admin, address = browse("admin"), f"/access/roles/{deployer.pk}/"
    assert "1 of them disabled" in page_text(admin.get(address))
    assert "1 disabled" in page_text(admin.get(address))
    assert "user disabled" in page_text(admin.get(f"{address}?by=holder"))
    refused = page_text(admin.get(f"{address}delete/"))
    assert "granted to 1 person (1 of them disabled). Revoke it from them first." in refused


def test_an_unused_role_is_deleted(browse, people, deployer):
    answer = browse("admin").post(f"/access/roles/{deployer.pk}/delete/")

    assert answer["Location"] == "/access/roles/"
    assert not Role.objects.filter(pk=deployer.pk).exists()


def test_a_reader_of_roles_looks_and_is_offered_no_change(browse, people, deployer):
    reader = Role.objects.create(name="Auditor", type="root-custom")
    RolePermission.objects.create(role=reader, permission="READ_ROLE")
    people["outsider"].root_role = reader
    people["outsider"].save()
    browser = browse("outsider")

    assert "New project role" not in browser.get("/access/roles/").text
    assert "/edit/" not in browser.get(f"/access/roles/{deployer.pk}/").text
    assert browser.get(f"/access/roles/{deployer.pk}/delete/").status_code == 403


def test_every_permission_is_offered_once_at_most():
    offered_here = [permission for subject in SUBJECTS.values() for permission in subject]

    assert len(offered_here) == len(set(offered_here))
    for permissions in SUBJECTS.values():
        assert len({permission.scope for permission in permissions}) == 1


def test_permissions_called_not_used_are_checked_nowhere():
    code = [path.read_text() for package in ROOTS
            for path in Path(package).rglob("*.py") if path.name not in ("permissions.py", "subjects.py")]  # fmt: skip

    checked = {name for name in NOT_USED if any(re.search(rf"Permission\.{name}\b", text) for text in code)}
    assert checked == set()


def test_permissions_of_features_that_do_not_exist_here_are_kept_and_named(browse, people, deployer):
    RolePermission.objects.create(role=deployer, permission="PROJECT_SETTINGS_READ")
    RolePermission.objects.create(role=deployer, permission="PROJECT_CHANGE_REQUEST_READ")
    admin, address = browse("admin"), f"/access/roles/{deployer.pk}/"

    assert 'value="PROJECT_SETTINGS_READ' not in admin.get(f"{address}edit/").text
    assert (
        "Imported permissions flagadmin does not use: View only access to change request configuration for project, View only"
        in page_text(admin.get(address))
    )
    admin.post(f"{address}edit/", {"name": "Deployer", "permissions": ["UPDATE_FEATURE"]})
    assert held(deployer) == {
        ("UPDATE_FEATURE", None),
        ("PROJECT_SETTINGS_READ", None),
        ("PROJECT_CHANGE_REQUEST_READ", None),
    }


def test_holders_of_a_root_role_take_as_many_queries_for_many(db, django_assert_num_queries):
    viewer = Role.objects.get(pk=BuiltIn.VIEWER)
    User.objects.bulk_create([User(username=f"user-{n}", root_role=viewer) for n in range(20)])
    with django_assert_num_queries(3):
        assert len(read_holders(viewer, Caller.system())) == 20


def test_holders_are_listed_with_where_and_since(browse, people, shop, deployer):
    group = Group.objects.create(name="Release team")
    Grant.objects.create(group=group, project=shop, role=deployer)
    Grant.objects.create(user=people["service"], project=shop, role=deployer)
    Grant.objects.create(user=people["member"], project=shop, role=deployer)
    admin, address = browse("admin"), f"/access/roles/{deployer.pk}/"

    page = page_text(admin.get(f"{address}?by=holder"))
    assert "1 user 1 service account 1 group 1 project" in page
    lines = b"".join(admin.get(f"{address}?by=holder&format=csv").streaming_content).decode().splitlines()
    assert [line.split(",")[:3] for line in lines] == [
        ["Held by", "Kind", "Where"],
        ["member", "user", "shop"],
        ["Release team", "group", "shop"],
        ["service", "service account", "shop"],
    ]
    assert "Release team" in admin.get(f"{address}?by=holder&q=release").text
    assert "service account</td>" not in admin.get(f"{address}?by=holder&q=release").text


def test_the_deletion_page_says_who_loses_access(browse, people, shop, deployer):
    group = Group.objects.create(name="Release team")
    GroupMembership.objects.create(group=group, user=people["outsider"])
    GroupMembership.objects.create(group=group, user=people["viewer"])
    Grant.objects.create(group=group, project=shop, role=deployer)
    admin, address = browse("admin"), f"/access/roles/{deployer.pk}/"

    sentence = (
        "2 accounts have this role, directly or through a group; 1 of them would lose access to all projects."
    )
    assert sentence in page_text(admin.get(address))
    assert sentence in page_text(admin.get(f"{address}delete/"))
    GroupMembership.objects.filter(user=people["outsider"]).delete()
    assert "All of them have other roles too." in page_text(admin.get(address))


def test_many_holders_are_paged_and_asked_for_in_few_queries(
    browse, people, shop, deployer, django_assert_max_num_queries
):
    users = User.objects.bulk_create(User(username=f"user-{number:04}") for number in range(1200))
    Grant.objects.bulk_create(Grant(user=user, project=shop, role=deployer) for user in users)
    admin = browse("admin")

    with django_assert_max_num_queries(20):
        page = admin.get(f"/access/roles/{deployer.pk}/?by=holder")
    assert page.text.count("user-") < 120
    assert "1–50 of 1,200" in page.text
