"""Changes to people, groups, roles and tokens on the admin site obey the rules of the API."""

from django.contrib import admin

from groups.models import ApiToken, Grant, Group, Role, User
from groups.permissions import BuiltIn
from tests.support.admin_forms import errors_of, refusals, saved, send, site
from tests.support.cast import make_token, make_user
from tests.support.records import events

__all__ = ["site"]


def test_a_person_is_created_changed_and_deleted(site, people):
    url = "/admin/groups/user/"
    saved(send(site, f"{url}add/", username="ada", name="Ada", new_password="correct horse battery"))
    ada = User.objects.get(username="ada")
    assert ada.check_password("correct horse battery")
    saved(send(site, f"{url}{ada.pk}/change/", root_role=str(BuiltIn.VIEWER)))
    ada.refresh_from_db()
    assert ada.root_role_id == BuiltIn.VIEWER
    site.post(f"{url}{ada.pk}/delete/", {"post": "yes"})
    assert not User.objects.filter(username="ada").exists()
    kinds = ["user-created", "user-updated", "user-deleted"]
    assert [event.type for event in events(*kinds)] == kinds


def test_the_last_admin_cannot_be_deleted_or_disabled(site, people):
    response = site.post(f"/admin/groups/user/{people['admin'].pk}/delete/", {"post": "yes"})
    assert "Nobody with the Admin role" in response.text
    response = send(site, f"/admin/groups/user/{people['admin'].pk}/change/", is_active=None)
    assert refusals(response)
    people["admin"].refresh_from_db()
    assert people["admin"].is_active


def test_a_group_and_its_members_are_changed(site, people):
    url = "/admin/groups/group/"
    saved(send(site, f"{url}add/", name="crew", description="", mappings_sso="[]"))
    crew = Group.objects.get()
    row = {"memberships-TOTAL_FORMS": "1", "memberships-0-user": str(people["outsider"].pk)}
    saved(send(site, f"{url}{crew.pk}/change/", **row))
    assert [user.username for user in crew.members.all()] == ["outsider"]
    saved(send(site, f"{url}{crew.pk}/change/", **{"memberships-0-DELETE": "on"}))
    assert not crew.members.exists()
    assert "list of names" in errors_of(send(site, f"{url}{crew.pk}/change/", mappings_sso='{"a": 1}'))[0]
    site.post(f"{url}{crew.pk}/delete/", {"post": "yes"})
    assert not Group.objects.exists()
    assert events("group-deleted")[0].before["name"] == "crew"


def test_permissions_of_a_role_are_replaced_unless_it_is_built_in(site, people):
    url = "/admin/groups/role/"
    saved(send(site, f"{url}add/", name="Tester", type="custom"))
    tester = Role.objects.get(name="Tester")
    page = f"{url}{tester.pk}/change/"
    rows = {
        "permissions-TOTAL_FORMS": "2",
        "permissions-0-permission": "CREATE_FEATURE",
        "permissions-1-permission": "UPDATE_FEATURE_ENVIRONMENT",
        "permissions-1-environment": "development",
    }
    saved(send(site, page, **rows))
    held = tester.permissions.order_by("permission").values_list("permission", "environment")
    assert list(held) == [("CREATE_FEATURE", None), ("UPDATE_FEATURE_ENVIRONMENT", "development")]
    saved(send(site, page, **{"permissions-0-DELETE": "on"}))
    assert tester.permissions.count() == 1
    assert refusals(send(site, page, **{"permissions-0-permission": "ADMIN"}))
    assert site.post(f"{url}{BuiltIn.OWNER}/change/", {"name": "X"}).status_code == 403
    assert site.post(f"{url}{BuiltIn.OWNER}/delete/", {"post": "yes"}).status_code == 403
    site.post(f"{url}{tester.pk}/delete/", {"post": "yes"})
    assert not Role.objects.filter(name="Tester").exists()


def test_a_tokens_expiry_is_changed_and_it_is_revoked(site, people):
    make_token("backend", projects=["shop"], environment="development")
    token = ApiToken.objects.get()
    url = f"/admin/groups/apitoken/{token.pk}/"
    assert "In UTC." in site.get(f"{url}change/").text
    saved(send(site, f"{url}change/", expires_at="2030-01-01T00:00:00"))
    token.refresh_from_db()
    assert token.expires_at is not None
    assert token.expires_at.year == 2030
    site.post(f"{url}delete/", {"post": "yes"})
    assert not ApiToken.objects.exists()
    assert len(events("api-token-updated", "api-token-deleted")) == 2
    assert site.get("/admin/groups/apitoken/add/").status_code == 403


def test_a_personal_token_is_revoked(site, people):
    make_token("personal", user=people["outsider"])
    token = ApiToken.objects.get()
    assert site.post(f"/admin/groups/apitoken/{token.pk}/change/", {}).status_code == 403
    site.post(f"/admin/groups/apitoken/{token.pk}/delete/", {"post": "yes"})
    assert not ApiToken.objects.exists()


def test_the_delete_page_says_what_blocks_it(site, people, shop, monkeypatch):
    for model in (User, Group, Role):
        monkeypatch.setattr(admin.site._registry[model], "remove", never)
    assert "Nobody with the Admin role" in site.get(f"/admin/groups/user/{people['admin'].pk}/delete/").text
    assert "Cannot delete" not in site.get(f"/admin/groups/user/{people['viewer'].pk}/delete/").text

    admins = Group.objects.create(name="Admins", root_role_id=BuiltIn.ADMIN)
    url = f"/admin/groups/group/{admins.pk}/delete/"
    assert "Cannot delete" not in site.get(url).text
    admins.members.add(people["admin"])
    User.objects.filter(pk=people["admin"].pk).update(root_role=None)
    assert "Nobody with the Admin role" in site.get(url).text
    admins.members.add(make_user("second", root_role=BuiltIn.ADMIN))
    assert "You would lose the Admin role" in site.get(url).text

    tester = Role.objects.create(name="Tester", type=Role.Type.CUSTOM)
    url = f"/admin/groups/role/{tester.pk}/delete/"
    assert "Cannot delete" not in site.get(url).text
    Grant.objects.create(role=tester, project=shop, user=people["outsider"])
    assert "Tester is granted to 1 person" in site.get(url).text


def never(*args, **kwargs):
    raise AssertionError("a page that is only shown deletes nothing")
