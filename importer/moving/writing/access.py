"""Moves who may do what, which only the database tells: custom roles, groups, and roles in projects."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from groups.groups.actions import NewGroup, change_members, create_group
from groups.models import Grant, Group, Role, User
from groups.models.roles import HeldPermission
from groups.permissions import BuiltIn, Permission, Scope
from groups.roles.actions import create_role, update_role
from importer.moving.reading.hidden import GroupRow, Hidden, RoleRow
from importer.moving.reading.installation import Installation
from importer.moving.report import Kind, Line
from importer.moving.writing.edits import Edits
from importer.moving.writing.keeping import DELETED, EDITED, SYSTEM, keep
from importer.moving.writing.people import ROOT_ROLES, find_accounts
from projects.members.actions import Holders, add_roles
from projects.models import Environment, Project

CUSTOM = (Role.Type.CUSTOM, Role.Type.ROOT_CUSTOM)
IN_PROJECTS = (Role.Type.PROJECT, Role.Type.CUSTOM)
BUILT_IN_IN_PROJECTS = (BuiltIn.OWNER, BuiltIn.MEMBER, BuiltIn.READER)
"""They have the same ids there."""


def find_roles(hidden: Hidden) -> dict[int, int]:
    """Ids here of custom roles by ids there."""
    here = dict(Role.objects.filter(type__in=CUSTOM).values_list("name", "id"))
    return {row.id: here[row.name] for row in _find_custom(hidden) if row.name in here}


def move_roles(hidden: Hidden, edits: Edits) -> Iterator[Line]:
    environments = set(Environment.objects.values_list("name", flat=True))
    for row in _find_custom(hidden):
        permissions, left = _read_permissions(row, hidden, environments)
        values: dict[str, Any] = {"description": row.description, "permissions": permissions}
        present = Role.objects.filter(name=row.name).first()
        subject = f"role {row.name}"
        if present is not None and present.type != row.type:
            yield Line(Kind.CANNOT, subject, f"a role of another type has this name here: {present.type}")
            continue
        yield from keep(
            subject,
            present,
            Role.document,
            create=partial(create_role, row.name, type=row.type, **values, caller=SYSTEM),
            update=partial(update_role, present.pk if present else 0, values, caller=SYSTEM),  # type: ignore[arg-type]
            is_edited=edits.has("role-", row.name),
        )
        if left:
            yield Line(Kind.CANNOT, f"permissions of role {row.name}", f"are unknown here: {', '.join(left)}")


def _find_custom(hidden: Hidden) -> list[RoleRow]:
    return [row for row in hidden.roles.values() if row.type in CUSTOM]


def _read_permissions(
    row: RoleRow, hidden: Hidden, environments: set[str]
) -> tuple[list[HeldPermission], list[str]]:
    """Reads the permissions that such a role can have here, and the names of the others."""
    permissions, left = [], []
    for held in hidden.permissions.get(row.id, []):
        permission = Permission.__members__.get(held.permission or "")
        environment = held.environment or None
        fits = (
            permission is not None
            and permission is not Permission.ADMIN
            and (permission.scope is Scope.ROOT) == (row.type == Role.Type.ROOT_CUSTOM)
            and (environment is None or environment in environments)
        )
        if permission is None or not fits:
            left.append(f"{held.permission}{f' in {environment}' if environment else ''}")
        else:
            limited = environment if permission.scope is Scope.ENVIRONMENT else None
            permissions.append(HeldPermission(permission.value, limited))
    return permissions, sorted(set(left))


def move_groups(hidden: Hidden, edits: Edits, roles: dict[int, int]) -> Iterator[Line]:
    """Members who are only here stay."""
    accounts = find_accounts(hidden)
    for row in hidden.groups:
        members = {accounts[key].pk for key in hidden.members.get(row.id, []) if key in accounts}
        present = Group.objects.filter(name=row.name).first()
        subject, is_edited = f"group {row.name}", edits.has("group-", row.name)
        missing = members - (present.member_ids() if present else set())
        if present is not None and not missing:
            continue
        if is_edited:
            detail = f"{EDITED}: {len(missing)} more members there" if present else DELETED
            yield Line(Kind.CONFLICT, subject, detail)
        elif present is not None:
            change_members(present.pk, add=missing, caller=SYSTEM)
            yield Line(Kind.CHANGE, subject, f"{len(missing)} more members")
        else:
            create_group(_read_group(row, members, roles), caller=SYSTEM)
            yield Line(Kind.CREATE, subject, f"{len(members)} members")


def _read_group(row: GroupRow, members: set[int], roles: dict[int, int]) -> NewGroup:
    role = row.root_role_id
    names = row.mappings_sso if isinstance(row.mappings_sso, list) else []
    return NewGroup(
        name=row.name,
        description=row.description,
        mappings_sso=tuple(str(name) for name in names),
        root_role=role if role in ROOT_ROLES else roles.get(role or 0),
        users=tuple(sorted(members)),
    )


def move_access(installation: Installation, hidden: Hidden, edits: Edits) -> Iterator[Line]:
    """Gives people and groups the roles in projects that they have there, in addition to those that they have here."""
    wanted = _find_grants({project.id for project in installation.projects}, hidden)
    for (project, holder), roles in wanted.items():
        held = Grant.objects.filter(project=project, user=holder.user, group=holder.group)
        if not (missing := roles - {*held.values_list("role_id", flat=True)}):
            continue
        named = Role.objects.filter(pk__in=missing).order_by("name").values_list("name", flat=True)
        subject, detail = f"access of {holder.name} to project {project}", ", ".join(named)
        if edits.has_access(project, holder.name):
            yield Line(Kind.CONFLICT, subject, f"{EDITED}: {detail} there", project)
        else:
            add_roles(project, [holder.as_holders()], missing, caller=SYSTEM)
            yield Line(Kind.CREATE, subject, detail, project)


@dataclass(frozen=True, slots=True)
class _Holder:
    user: User | None = None
    group: Group | None = None

    @property
    def name(self) -> str:
        return str(self.user or self.group)

    def as_holders(self) -> Holders:
        if self.user is not None:
            return Holders("user", (self.user.pk,))
        assert self.group is not None
        return Holders("group", (self.group.pk,))


def _find_grants(projects: set[str], hidden: Hidden) -> dict[tuple[str, _Holder], set[int]]:
    """The roles here that people and groups have there, by project, of those that are known here."""
    roles, accounts = find_roles(hidden), find_accounts(hidden)
    here = {group.name: group for group in Group.objects.filter(name__in=[row.name for row in hidden.groups])}
    groups = {row.id: here[row.name] for row in hidden.groups if row.name in here}
    known = {*Project.objects.filter(id__in=projects).values_list("id", flat=True)}
    grants: dict[tuple[str, _Holder], set[int]] = defaultdict(set)
    for held in hidden.held:
        role = held.role_id if held.role_id in BUILT_IN_IN_PROJECTS else roles.get(held.role_id)
        holder = _Holder(user=accounts.get(held.user_id), group=groups.get(held.group_id))
        is_of_project = held.role_id in hidden.roles and hidden.roles[held.role_id].type in IN_PROJECTS
        if is_of_project and role is not None and held.project in known and holder != _Holder():
            grants[held.project, holder].add(role)
    return grants
