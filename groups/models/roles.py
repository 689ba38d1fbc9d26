"""Models of roles, their permissions, and the grants of roles in projects."""

from dataclasses import dataclass
from typing import NotRequired, TypedDict

import pgtrigger
from django.db import models
from django.db.models import Q

from flagadmin.core.db.commits import notify_trigger
from groups.permissions import BuiltIn, Permission


@dataclass(frozen=True, slots=True)
class HeldPermission:
    """A permission of a role. ``environment`` limits it to one environment; None means all."""

    permission: str
    environment: str | None = None

    def document(self) -> "PermissionDocument":
        if self.environment is None:
            return {"name": self.permission}
        return {"name": self.permission, "environment": self.environment}


class PermissionDocument(TypedDict):
    name: str
    environment: NotRequired[str]


class RoleDocument(TypedDict):
    id: int
    name: str
    description: str
    type: str
    permissions: list[PermissionDocument]


class RoleQuerySet(models.QuerySet["Role"]):
    def root(self) -> "RoleQuerySet":
        return self.filter(type__in=[Role.Type.ROOT, Role.Type.ROOT_CUSTOM])

    def for_projects(self) -> "RoleQuerySet":
        return self.filter(type__in=[Role.Type.PROJECT, Role.Type.CUSTOM])


class Role(models.Model):
    """A named set of permissions, held globally (root types) or in a project (project types)."""

    class Type(models.TextChoices):
        ROOT = "root", "Root role, built in"
        PROJECT = "project", "Project role, built in"
        ROOT_CUSTOM = "root-custom", "Root role"
        CUSTOM = "custom", "Project role"

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=255, unique=True)
    description = models.TextField(blank=True)
    type = models.CharField(max_length=16, choices=Type.choices, default=Type.CUSTOM)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = RoleQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [models.CheckConstraint(condition=~Q(name=""), name="role_name_not_empty")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_built_in(self) -> bool:
        return self.id in BuiltIn.__members__.values()

    @property
    def is_root(self) -> bool:
        return self.type in (self.Type.ROOT, self.Type.ROOT_CUSTOM)

    def held_permissions(self) -> list[HeldPermission]:
        """Lists the permissions by name, then by environment."""
        return [row.held for row in self.permissions.order_by("permission", "environment_id")]

    def document(self) -> RoleDocument:
        """The role as a JSON document for audit events and edit conflicts."""
        permissions = self.held_permissions()
        return {
            "id": self.pk,
            "name": self.name,
            "description": self.description,
            "type": self.type,
            "permissions": [each.document() for each in permissions],
        }


class RolePermission(models.Model):
    """A permission of a role. An environment permission applies to one environment, or to all (null)."""

    role = models.ForeignKey(Role, on_delete=models.CASCADE, related_name="permissions")
    permission = models.CharField(max_length=64, choices=[(p.value, p.display) for p in Permission])
    environment = models.ForeignKey(
        "projects.Environment", null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["role", "permission", "environment"],
                name="role_permission_once",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.role}: {self.permission}"

    @property
    def held(self) -> HeldPermission:
        return HeldPermission(self.permission, self.environment_id)


class Grant(models.Model):
    """A role given to a user or to a group in one project."""

    role = models.ForeignKey(Role, on_delete=models.RESTRICT, related_name="grants")
    project = models.ForeignKey("projects.Project", on_delete=models.CASCADE, related_name="grants")
    user = models.ForeignKey(
        "groups.User", null=True, blank=True, on_delete=models.CASCADE, related_name="grants"
    )
    group = models.ForeignKey(
        "groups.Group", null=True, blank=True, on_delete=models.CASCADE, related_name="grants"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(user__isnull=True, group__isnull=False)
                | Q(user__isnull=False, group__isnull=True),
                name="grant_to_user_or_group",
            ),
            models.UniqueConstraint(fields=["project", "role", "user"], name="grant_user_once"),
            models.UniqueConstraint(fields=["project", "role", "group"], name="grant_group_once"),
        ]
        # Covers counting the holders of a role without reading the rows.
        indexes = [
            models.Index(fields=["role", "project"], include=["user", "group"], name="grant_role_project")
        ]

    def __str__(self) -> str:
        return f"{self.role} in {self.project_id} for {self.user or self.group}"


class PrivateProject(models.Model):
    """The id of a project that is private, or that was private when it was deleted. Written by a trigger only.

    Kept apart from the projects because the rights of every request need it. There is no foreign key: it outlives the
    project, because audit events and other records do.
    """

    project_id = models.CharField(max_length=100, primary_key=True)

    class Meta:
        triggers = [notify_trigger(pgtrigger.Insert | pgtrigger.Update | pgtrigger.Delete)]

    def __str__(self) -> str:
        return self.project_id
