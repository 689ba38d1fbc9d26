"""Lists of who can be given access, and the number of admins."""

from groups.models import Group, GroupMembership
from groups.permissions import BuiltIn
from tests.support.cast import make_user
from tests.support.records import refused

USERS = "/api/admin/user-admin"


def test_candidates_are_accounts_and_groups(api, people):
    group = Group.objects.create(name="Crew", description="Rows")
    GroupMembership.objects.create(group=group, user=people["owner"])
    Group.objects.create(name="Others")
    body = api["owner"].get(f"{USERS}/access").json()
    assert {user["username"] for user in body["users"]} == set(people)
    robot = next(user for user in body["users"] if user["username"] == "service")
    assert robot == {
        "id": people["service"].pk,
        "username": "service",
        "accountType": "Service Account",
    }
    assert body["groups"] == [{"id": group.pk, "name": "Crew", "description": "Rows"}]


def test_admins_are_counted_by_kind(api, people):
    people["admin"].set_password("correct horse battery")
    people["admin"].save()
    linked = make_user("linked", root_role=BuiltIn.ADMIN)
    linked.set_unusable_password()
    linked.save()
    make_user("robot", root_role=BuiltIn.ADMIN, is_service=True)
    make_user("left", root_role=BuiltIn.ADMIN, is_active=False)
    assert api["admin"].get(f"{USERS}/admin-count").json() == {"password": 1, "noPassword": 1, "service": 1}
    refused(api["editor"].get(f"{USERS}/admin-count"), 403, "NoAccessError")
