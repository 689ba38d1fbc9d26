"""Summarizes the caller's permissions, and where they apply, for the first page they see."""

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from groups.models import Grant, Role, RolePermission, User
from groups.permissions import Permission
from groups.roles.subjects import is_used, name_permission


@dataclass(frozen=True, slots=True)
class Access:
    """A role, and what it permits by environment, "" for all. ``project``: its name, "" for every project."""

    role: str
    project_id: str
    project: str
    permits: list[tuple[str, str]]


def read_grants(user: User) -> QuerySet[Grant]:
    """The project roles of a user, granted directly or (``grant.group``) through a group."""
    grants = Grant.objects.filter(Q(user=user) | Q(group__in=user.groups.values("pk")))
    return grants.select_related("role", "group").order_by("project_id", "role__name", "id")


def describe_access(user: User) -> list[Access]:
    """The roles of a user: those everywhere first, then by project."""
    everywhere = Role.objects.filter(Q(users=user) | Q(groups__members=user)).distinct()
    grants = read_grants(user).select_related("role", "project")
    return [
        *(Access(role.name, "", "", _list_permitted(role)) for role in everywhere),
        *(
            Access(grant.role.name, grant.project_id, grant.project.name, _list_permitted(grant.role))
            for grant in grants
        ),
    ]


def _list_permitted(role: Role) -> list[tuple[str, str]]:
    """[("development", "Add strategies, Switch flags"), …]; a built-in role in its own words."""
    if role.is_built_in:
        return [("", role.description)]
    names: dict[str, list[str]] = {}
    rows = RolePermission.objects.filter(role=role).order_by("environment__sort_order", "permission")
    for permission, environment in rows.values_list("permission", "environment_id"):
        if is_used(permission):
            names.setdefault(environment or "", []).append(name_permission(Permission[permission]))
    return [(where, ", ".join(sorted(those))) for where, those in sorted(names.items())]
