"""/access/roles/: permissions and holders of a role, creating and deleting roles."""

import pytest

from groups.models import Grant, Group, Role, RolePermission
from groups.permissions import BuiltIn
from tests.support.page_text import page_text


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
    assert "Create feature flags" in page_text(page)


def test_a_root_role_shows_who_holds_it(browse, people):
    page = page_text(browse("admin").get(f"/access/roles/{BuiltIn.VIEWER.value}/"))

    assert "Who has it everywhere viewer" in page
    assert "Read-only access." in page


def test_a_built_in_role_is_not_changed(browse, people):
    admin = browse("admin")

    assert "/access/roles/5/edit/" not in admin.get("/access/roles/5/").text
    refused = admin.get("/access/roles/5/edit/")
    assert refused.status_code == 403
    assert "Member is a built-in role and cannot be changed." in page_text(refused)
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

    shown = admin.get(address).text
    admin.post(address, {"name": "Deployer", "permissions": ["UPDATE_FEATURE"]})

    assert (
        'value="UPDATE_FEATURE_ENVIRONMENT production" aria-label="Enable/disable flags in production" checked'
        in shown
    )
    assert held(deployer) == {("UPDATE_FEATURE", None)}


def test_a_role_in_use_is_not_deleted_and_says_by_how_many(browse, people, shop, deployer):
    Grant.objects.create(user=people["member"], project=shop, role=deployer)
    admin, address = browse("admin"), f"/access/roles/{deployer.pk}/delete/"

    assert "Deployer is granted to 1 person. Revoke it from them first." in page_text(admin.get(address))
    refused = admin.post(address)
    assert refused.status_code == 400
    assert "Revoke it from them first" in page_text(refused)
    assert Role.objects.filter(pk=deployer.pk).exists()


def test_deleting(browse, people, deployer):
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
