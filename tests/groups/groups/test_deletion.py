"""DELETE /api/admin/groups/:groupId"""

from threading import Event

import pytest
from django.db import transaction

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import NotFound
from groups.access import Caller
from groups.groups.actions import delete_group, plan_group_deletion, update_group
from groups.models import Grant, Group, GroupMembership, User
from groups.permissions import BuiltIn
from projects.models import Project
from tests.support.cast import make_project, make_user
from tests.support.live_server import PATIENCE
from tests.support.racing import BEFORE_COMMIT, BEFORE_LOCK, in_thread, race

URL = "/api/admin/groups"


@pytest.fixture
def team(people, shop):
    """viewer, member and outsider, with Member in shop."""
    group = Group.objects.create(name="Former contractors")
    for name in ("viewer", "member", "outsider"):
        GroupMembership.objects.create(group=group, user=people[name])
    Grant.objects.create(group=group, project=shop, role_id=BuiltIn.MEMBER)
    return group


def test_deleting_a_group_keeps_its_members(api, people, team):
    response = api["admin"].delete(f"{URL}/{team.pk}")
    assert (response.status_code, response.content) == (200, b"")
    assert not Group.objects.filter(pk=team.pk).exists()
    assert not GroupMembership.objects.exists()
    assert not Grant.objects.filter(role=BuiltIn.MEMBER, user=None).exists()
    assert User.objects.count() == len(people)
    assert Project.objects.filter(id="shop").exists()


def test_the_event_has_what_was_lost(api, people, team):
    api["admin"].delete(f"{URL}/{team.pk}")
    event = AuditEvent.objects.get(type="group-deleted")
    assert (event.subject, event.actor_name, event.after) == ("Former contractors", "admin", None)
    assert event.before["users"] == sorted(people[name].pk for name in ("viewer", "member", "outsider"))
    assert event.before["grants"] == [{"project_id": "shop", "role_id": BuiltIn.MEMBER}]


def test_rights_end_at_once(api, team):
    assert api["outsider"].get("/api/admin/projects/shop/api-tokens").status_code == 200
    api["admin"].delete(f"{URL}/{team.pk}")
    assert api["outsider"].get("/api/admin/projects/shop/api-tokens").status_code == 404


def test_a_scim_group_may_be_deleted(api, team):
    team.scim_id = "abc"
    team.save()
    assert api["admin"].delete(f"{URL}/{team.pk}").status_code == 200


@pytest.mark.parametrize("unknown", ["999999", "-1", "0", "99999999999", "9" * 40])
def test_an_unknown_group_is_404(api, unknown):
    response = api["admin"].delete(f"{URL}/{unknown}")
    assert (response.status_code, response.json()["name"]) == (404, "NotFoundError")


def test_deleting_a_group_twice_is_404(api, team):
    assert api["admin"].delete(f"{URL}/{team.pk}").status_code == 200
    assert api["admin"].delete(f"{URL}/{team.pk}").status_code == 404
    assert AuditEvent.objects.filter(type="group-deleted").count() == 1


@pytest.mark.parametrize("nonsense", ["abc", "NaN", "1.5", "1e3", "null"])
def test_an_id_that_is_no_number_is_400(api, nonsense):
    response = api["admin"].delete(f"{URL}/{nonsense}")
    assert (response.status_code, response.json()["name"]) == (400, "ValidationError")
    assert response.json()["details"][0]["path"] == "groupId"


def test_the_last_group_that_gives_the_admin_role_is_not_deleted(api, people):
    people["admin"].delete()
    admin = make_user("boss")
    group = Group.objects.create(name="Admins", root_role_id=BuiltIn.ADMIN)
    GroupMembership.objects.create(group=group, user=admin)
    response = api["admin_token"].delete(f"{URL}/{group.pk}")
    assert (response.status_code, response.json()["name"]) == (403, "InvalidOperationError")


def test_the_plan_names_members_grants_and_who_loses_all_access(people, team):
    plan = plan_group_deletion(team, caller=Caller.system())
    assert [user.username for user in plan.members] == ["member", "outsider", "viewer"]
    assert [(grant.project_id, grant.role.name) for grant in plan.grants] == [("shop", "Member")]
    assert [user.username for user in plan.losing_all] == ["outsider"]


def test_the_plan_counts_access_through_other_groups(people, team):
    other_group = Group.objects.create(name="Other")
    GroupMembership.objects.create(group=other_group, user=people["outsider"])
    assert [user.username for user in plan_group_deletion(team, caller=Caller.system()).losing_all] == [
        "outsider"
    ]
    Grant.objects.create(group=other_group, project=make_project("elsewhere"), role_id=BuiltIn.READER)
    assert plan_group_deletion(team, caller=Caller.system()).losing_all == []


def test_nobody_loses_access_with_a_group_that_gives_nothing(people):
    group = Group.objects.create(name="Empty")
    GroupMembership.objects.create(group=group, user=people["outsider"])
    assert plan_group_deletion(group, caller=Caller.system()).losing_all == []


# Races, on connections of their own ---------------------------------------------------------------------------


@pytest.fixture
def raced(transactional_db):
    user, group = make_user("anna"), Group.objects.create(name="Team")
    return user, group, make_project("shop")


def test_adding_a_member_during_the_deletion_waits_and_is_404(raced):
    user, group, _ = raced
    with pytest.raises(NotFound):
        race(
            lambda: delete_group(group.pk, caller=Caller.system()),
            lambda: update_group(group.pk, {"users": (user.pk,)}, caller=Caller.system()),
            stop=BEFORE_COMMIT,
        )
    assert not Group.objects.exists()
    assert not GroupMembership.objects.exists()


def test_a_grant_during_the_deletion_leaves_no_orphan(raced):
    _, group, project = raced
    granted, deleted = Event(), Event()

    def grant():
        with transaction.atomic():
            Grant.objects.create(group=group, project=project, role_id=BuiltIn.MEMBER)
            granted.set()
            assert deleted.wait(PATIENCE)

    granting = in_thread(grant)
    assert granted.wait(PATIENCE)
    delete_group(group.pk, caller=Caller.system())
    deleted.set()
    assert "foreign key" in str(granting.exception(PATIENCE))
    assert not Grant.objects.exists()
    assert not Group.objects.exists()


@pytest.mark.parametrize("stop", [BEFORE_LOCK, BEFORE_COMMIT])
def test_of_two_deletions_at_once_one_succeeds(raced, stop):
    _, group, _ = raced
    with pytest.raises(NotFound):
        race(*[lambda: delete_group(group.pk, caller=Caller.system())] * 2, stop=stop)
    assert not Group.objects.exists()
    assert AuditEvent.objects.filter(type="group-deleted").count() == 1
