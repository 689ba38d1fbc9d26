"""Reads the roles in a project, counts members and roles, and finds people and groups by name."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from flagadmin.core.db.statements import FEW, fetch_rows
from flagadmin.core.document import Document
from flagadmin.core.errors import ValidationError
from flagadmin.core.http.responses import iso
from flagadmin.core.lists.pages import MAX_OPTIONS
from groups.access import Caller
from groups.groups.actions import find_offered_groups
from groups.models import Grant, Group, GroupMembership, Role, RolePermission, User
from groups.people.console import suggest_accounts
from groups.permissions import Permission, Scope
from projects.models import Project


def make_project_access_document(project: Project) -> Document:
    """``{users, groups, roles}``: direct holders with all their roles in the project. Three queries."""
    users: dict[int, Document] = {}
    groups: dict[int, Document] = {}
    grants = Grant.objects.filter(project=project).select_related("user", "group").order_by("id")
    for grant in grants:
        if grant.user is not None:
            document = users.setdefault(grant.user.pk, make_user_document(grant.user))
        elif grant.group is not None:
            document = groups.setdefault(grant.group.pk, _group(grant.group))
        else:
            continue
        document.setdefault("roleId", grant.role_id)
        document.setdefault("addedAt", iso(grant.created_at))
        document.setdefault("roles", []).append(grant.role_id)
    _add_members(groups)
    return {
        "users": list(users.values()),
        "groups": list(groups.values()),
        "roles": [_make_role(r) for r in Role.objects.for_projects()],
    }


def describe_environments_of_roles(roles: Collection[int]) -> dict[int, str]:
    """Where the per-environment permissions of project roles apply: ``all``, or ``development, test``.

    Leaves out roles without such permissions. One query.
    """
    scoped = [permission.value for permission in Permission if permission.scope is Scope.ENVIRONMENT]
    places: dict[int, dict[str, None]] = {}
    rows = RolePermission.objects.filter(role__in=roles, permission__in=scoped)
    ordered = rows.order_by("environment__sort_order", "environment_id")
    for role, environment in ordered.values_list("role_id", "environment_id"):
        places.setdefault(role, {})[environment or ""] = None
    return {role: "all" if "" in names else ", ".join(names) for role, names in places.items()}


def make_user_document(user: User) -> Document:
    return {
        "id": user.pk,
        "isAPI": False,
        "accountType": "Service Account" if user.is_service else "User",
        "name": user.name,
        "username": user.username,
        "email": user.email,
    }


def _group(group: Group) -> Document:
    return {
        "id": group.pk,
        "name": group.name,
        "description": group.description,
        "rootRole": group.root_role_id,
        "mappingsSSO": group.mappings_sso,
        "scimId": group.scim_id,
        "createdAt": iso(group.created_at),
        "createdBy": group.created_by,
        "users": [],
    }


def _add_members(groups: dict[int, Document]) -> None:
    members = GroupMembership.objects.filter(group_id__in=groups).select_related("user")
    for membership in members.order_by("id"):
        groups[membership.group_id]["users"].append(
            {
                "user": make_user_document(membership.user),
                "joinedAt": iso(membership.joined_at),
                "createdBy": membership.created_by,
            }
        )


def _make_role(role: Role) -> Document:
    return {"id": role.pk, "name": role.name, "type": role.type, "description": role.description}


# With the start of each grant, and a row for each way to a role.
_HOLDERS = """
SELECT project_id, user_id, created_at AS since FROM groups_grant
 WHERE user_id IS NOT NULL AND project_id = ANY(%(projects)s)
UNION ALL
SELECT g.project_id, m.user_id, greatest(g.created_at, m.joined_at)
  FROM groups_grant g JOIN groups_groupmembership m ON m.group_id = g.group_id
 WHERE g.project_id = ANY(%(projects)s)
"""


def count_members(ids: Sequence[str]) -> dict[str, int]:
    """Members by project, each counted once. Projects without members have no entry. One query."""
    statement = f"SELECT project_id, count(DISTINCT user_id) FROM ({_HOLDERS}) AS holders GROUP BY 1"  # noqa: S608 - constants
    return dict(fetch_rows(statement, {"projects": list(ids)}, prepared=len(ids) <= FEW))


def count_new_members(project: Project, since: datetime) -> int:
    """Members whose first role in the project is not older than ``since``. One query."""
    statement = f"""
        SELECT count(*) FROM (
            SELECT user_id FROM ({_HOLDERS}) AS holders GROUP BY user_id HAVING min(since) >= %(since)s) AS new
    """  # noqa: S608 - constants
    [(number,)] = fetch_rows(statement, {"projects": [project.pk], "since": since})
    return int(number)


# There are few service accounts and few disabled ones, so users are counted as all grants minus those of service
# accounts. Then only the index of grants is read in full.
_USAGE = """
SELECT g.project_id, count(g.user_id) - count(s.id), count(s.id), count(g.group_id), count(d.id)
  FROM groups_grant g
  LEFT JOIN (SELECT id FROM groups_user WHERE is_service) AS s ON s.id = g.user_id
  LEFT JOIN (SELECT id FROM groups_user WHERE NOT is_active) AS d ON d.id = g.user_id
 WHERE g.role_id = %s
 GROUP BY g.project_id
 ORDER BY g.project_id COLLATE "C"
"""


def read_role_usage(role_id: int, caller: Caller) -> list[dict[str, Any]]:
    """Direct grants by project that the caller may read; a group counts once, whatever its size. One query.

    ``disabledCount`` is only present if an account is disabled; the other members are the reference's.
    """
    return [
        {
            "project": project,
            "role": role_id,
            "userCount": users,
            "serviceAccountCount": services,
            "groupCount": groups,
            **({"disabledCount": disabled} if disabled else {}),
        }
        for project, users, services, groups, disabled in fetch_rows(_USAGE, [role_id])
        if caller.can_read(project)
    ]


GROUP_PREFIX = "group: "


def name_holder(holder: User | Group | None) -> str:
    """The holder's name in the form that ``find_holder`` reads; "" for None."""
    return f"{GROUP_PREFIX}{holder}" if isinstance(holder, Group) else str(holder or "")


def find_holder(text: str, path: str) -> User | Group | None:
    """The account or group with this name; None if there is none.

    A group needs the prefix ``group:`` unless no account has that name. Raises ValidationError at ``path`` for an empty
    name and for an unknown group with the prefix.
    """
    name = text.strip()
    if not name:
        raise ValidationError.at(path, "Enter an email address, a user name or a group.")
    is_group = name.casefold().startswith(GROUP_PREFIX.strip())
    group_name = name[len(GROUP_PREFIX) - 1 :].strip() if is_group else name
    group = Group.objects.filter(name__iexact=group_name).order_by("id").first()
    if is_group and group is None:
        raise ValidationError.at(path, f"Group {group_name} not found.")
    return (None if is_group else User.objects.known_as(name).first()) or group


def suggest_holders(caller: Caller) -> list[tuple[str, str]]:
    """Options for a text input: groups that the caller may see, and the user names of active accounts."""
    return _group_options(find_offered_groups(caller)) + suggest_accounts()


def suggest_holders_in(project_id: str) -> list[tuple[str, str]]:
    """Groups and people with a role in the project, for callers who may not see all people."""
    groups = Group.objects.filter(grants__project=project_id)
    people = (
        User.objects.people().active().filter(Q(grants__project=project_id) | Q(groups__in=groups)).distinct()
    )
    known = [(user.username, user.name) for user in people.order_by("username")[:MAX_OPTIONS]]
    return _group_options(groups.distinct()) + known


def _group_options(groups: QuerySet[Group]) -> list[tuple[str, str]]:
    names = groups.order_by("name").values_list("name", flat=True)[:MAX_OPTIONS]
    return [(f"{GROUP_PREFIX}{name}", "") for name in names]
