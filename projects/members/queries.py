"""Builds the document of all roles granted in a project, as returned by the API."""

from collections.abc import Collection

from flagadmin.core.document import Document
from flagadmin.core.http.timestamps import iso
from groups.models import Grant, Group, GroupMembership, Role, RolePermission, User
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
    """Lists where the per-environment permissions of project roles apply: ``all``, or ``development, test``.

    A role without such permissions is left out. One query.
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
