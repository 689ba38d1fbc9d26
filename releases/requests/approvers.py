"""Determines who may approve the requests of an environment."""

from collections.abc import Collection

from flagadmin.core.errors import NoAccess, choices
from groups.access import NOTHING, Caller, Permission, read_rights_of_users
from groups.groups.actions import Approvals, Place
from groups.models import Grant, Group, GroupMembership, Role, User
from groups.roles.holders import find_holders
from projects.models import ProjectEnvironment

APPROVE = Permission.APPROVE_CHANGE_REQUEST


def check_may_approve(project_id: str, environment: str, caller: Caller) -> None:
    """Raises NoAccess."""
    caller.check(APPROVE, project=project_id, environment=environment)
    if not may_approve(project_id, environment, caller):
        names = choices(approver_group_names(project_id, environment))
        raise NoAccess(
            f"Only members of {names} may approve changes of {environment} in project {project_id}."
        )


def may_approve(project_id: str, environment: str, caller: Caller) -> bool:
    """Whether the caller has the permission and, if the environment names groups, is a member of one. Also
    for admins.
    """
    if not caller.can(APPROVE, project=project_id, environment=environment):
        return False
    groups = find_approver_groups(project_id, environment)
    return not groups or GroupMembership.objects.filter(group__in=groups, user=caller.id).exists()


def list_approvers(project_id: str, environment: str, *, without_group: int = 0) -> list[User]:
    """The people who may approve there, by user name. Three queries for any number of people.

    ``without_group``: ignores the group with this id.
    """
    roles = Role.objects.filter(permissions__permission__in=(APPROVE, Permission.ADMIN))
    people = find_holders(roles).people().filter(is_active=True).order_by("username")
    if groups := find_approver_groups(project_id, environment):
        left = [group for group in groups if group != without_group]
        people = people.filter(pk__in=GroupMembership.objects.filter(group__in=left).values("user"))
    rights = read_rights_of_users((user.pk for user in people), without_group=without_group)
    return [user for user in people if rights.get(user.pk, NOTHING).allow(APPROVE, project_id, environment)]


def approver_group_names(project_id: str, environment: str) -> list[str]:
    """The names of the groups whose members may approve; [] for everyone with the permission."""
    ids = find_approver_groups(project_id, environment)
    names = list(Group.objects.filter(pk__in=ids).order_by("name").values_list("name", flat=True))
    return names or ["a deleted group"] * bool(ids)


def find_approver_groups(project_id: str, environment: str) -> list[int]:
    """Their ids; [] for everyone with the permission."""
    links = ProjectEnvironment.objects.filter(project=project_id, environment=environment)
    return links.values_list("approver_groups", flat=True).first() or []


def find_strictest(link: ProjectEnvironment) -> int:
    """The most approvals that a request may need there."""
    return max(link.required_approvals or 0, *(rule["requiredApprovals"] for rule in link.approval_rules), 0)


def find_approvals(group_id: int) -> Approvals:
    """The places that name a group as approvers, and the environments that would have no other approver."""
    links = ProjectEnvironment.objects.needing_requests().filter(project__archived_at=None)
    links = links.order_by("project", "environment")
    named = [(link.project_id, link.environment_id) for link in links if group_id in link.approver_groups]
    granted = Group.objects.filter(pk=group_id, root_role__isnull=False).exists()
    projects = set(Grant.objects.filter(group=group_id).values_list("project_id", flat=True))
    concerned = [
        (link.project_id, link.environment_id)
        for link in links
        if find_strictest(link)
        and (granted or link.project_id in projects or group_id in link.approver_groups)
    ]
    return Approvals(named, [place for place in concerned if _depends_on(place, group_id)])


def _depends_on(place: Place, group_id: int) -> bool:
    return bool(list_approvers(*place)) and not list_approvers(*place, without_group=group_id)


def find_without_approvers(places: Collection[Place]) -> list[Place]:
    """The places that require approvals and have no approver."""
    links = ProjectEnvironment.objects.needing_requests().filter(
        project__in={project for project, _ in places}
    )
    needing = {(link.project_id, link.environment_id) for link in links if find_strictest(link)}
    return [place for place in places if place in needing and not list_approvers(*place)]
