"""A group that approves changes is not deleted, nor emptied by hand, while nobody else could approve."""

from typing import Any

import pytest

from flagadmin.core.audit.models import AuditEvent
from groups.models import Grant, Group, Role, RolePermission
from projects.models import ProjectEnvironment
from releases.requests.approvers import list_approvers
from tests.support.cast import make_group, make_user
from tests.support.page_text import page_text
from tests.support.records import refused
from tests.support.scim import GROUPS, Provider

pytestmark = pytest.mark.django_db
PLACE = "production in project shop"
REFUSED = f"Nobody could approve changes of {PLACE} any more. Name other approvers there first."


@pytest.fixture
def ann(shop: Any) -> Any:
    return make_user("ann", root_role=1)


@pytest.fixture
def approvers(ann: Any) -> Group:
    """The only group that approves in shop's production; it has one member."""
    group = make_group("Approvers", ann)
    guard([group])
    return group


def guard(groups: list[Group]) -> None:
    link = ProjectEnvironment.objects.filter(project="shop", environment="production")
    link.update(required_approvals=1, approver_groups=[group.pk for group in groups])


def delete(api: Any, group: Group) -> Any:
    return api["admin"].delete(f"/api/admin/groups/{group.pk}")


def test_the_only_group_of_approvers_is_not_deleted(api: Any, browse: Any, approvers: Group) -> None:
    assert refused(delete(api, approvers), 403, "InvalidOperationError")["message"] == REFUSED
    text = page_text(browse("admin").get(f"/access/groups/{approvers.pk}/delete/"))
    assert REFUSED in text
    Provider().send("delete", f"{GROUPS}/{approvers.pk}", status=403)
    assert list_approvers("shop", "production")


def test_another_group_of_approvers_frees_it(api: Any, browse: Any, approvers: Group) -> None:
    guard([approvers, make_group("Others", make_user("ben", root_role=1))])
    text = page_text(browse("admin").get(f"/access/groups/{approvers.pk}/delete/"))
    assert f"its place among the approvers of {PLACE}" in text
    assert delete(api, approvers).status_code == 200
    event = AuditEvent.objects.get(type="group-deleted")
    assert event.before["approves"] == ["shop:production"]
    assert [user.username for user in list_approvers("shop", "production")] == ["ben"]


def test_members_of_another_group_count_only_with_rights_of_their_own(
    api: Any, ann: Any, shop: Any, approvers: Group
) -> None:
    """Ben is in another group of approvers, but may approve by the first one's role alone."""
    ben = make_user("ben")
    owners = make_group("Owners", ben)
    role = Role.objects.create(name="Approver", type=Role.Type.CUSTOM)
    RolePermission.objects.create(role=role, permission="APPROVE_CHANGE_REQUEST")
    Grant.objects.create(project=shop, role=role, group=owners)
    guard([owners, make_group("Others", ben)])
    refused(delete(api, owners), 403, "InvalidOperationError")


def test_where_no_approval_is_needed_a_group_may_go(api: Any, approvers: Group) -> None:
    ProjectEnvironment.objects.update(required_approvals=None)
    assert delete(api, approvers).status_code == 200


def test_the_last_approver_is_not_removed_by_hand(api: Any, ann: Any, approvers: Group) -> None:
    body: dict[str, Any] = {"name": approvers.name, "users": []}
    answer = api["admin"].put(f"/api/admin/groups/{approvers.pk}", body, format="json")
    assert refused(answer, 403, "InvalidOperationError")["message"] == REFUSED
    assert approvers.member_ids() == {ann.pk}
    other = make_user("ben", root_role=1)
    body["users"] = [{"user": {"id": other.pk}}]
    answer = api["admin"].put(f"/api/admin/groups/{approvers.pk}", body, format="json")
    assert answer.status_code == 200


def test_what_the_identity_provider_takes_away_is_gone(ann: Any, approvers: Group) -> None:
    remove = {"op": "remove", "path": f'members[value eq "{ann.pk}"]'}
    Provider().patch(f"{GROUPS}/{approvers.pk}", remove, status=204)
    assert approvers.member_ids() == set()
