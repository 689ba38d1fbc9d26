"""Authorization: what a caller may do, and which projects they may read. No other module decides this.

A root role reads all projects except private ones, which only their members and admins can read.

A :class:`Caller` is the user or token that makes a request. The statement that finds its token also reads its rights;
otherwise one query reads them on first use. They are cached for the request.
"""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
from django.apps import apps
from django.db.models import Q
from django.utils.functional import cached_property

from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.errors import NoAccess, join_words
from groups.permissions import Permission, Scope
from groups.roles.subjects import name_permission

if TYPE_CHECKING:
    from groups.models import ApiToken, User

DEFAULT_PROJECT = "default"
SYSTEM_NAME = "flagadmin"

RIGHTS = """
WITH held AS (
    SELECT u.root_role_id AS role_id, NULL::text AS project_id FROM groups_user u WHERE u.id = {user}
    UNION ALL
    SELECT g.root_role_id, NULL FROM groups_group g JOIN groups_groupmembership m ON m.group_id = g.id
     WHERE m.user_id = {user}
    UNION ALL
    SELECT t.role_id, t.project_id FROM groups_grant t WHERE t.user_id = {user}
    UNION ALL
    SELECT t.role_id, t.project_id FROM groups_grant t JOIN groups_groupmembership m ON m.group_id = t.group_id
     WHERE m.user_id = {user}
)
SELECT jsonb_build_array(
       coalesce(jsonb_agg(jsonb_build_array(held.project_id, p.permission, p.environment_id)), '[]'),
       (SELECT coalesce(jsonb_agg(h.project_id), '[]') FROM groups_privateproject h))
  FROM held LEFT JOIN groups_rolepermission p ON p.role_id = held.role_id
 WHERE held.role_id IS NOT NULL
"""
"""The rights of ``{user}`` as JSON, a list of held permissions and one of the private projects. A permission is
``[project or null for root, permission or null, environment or null for all]``.
"""

_SCOPES = {permission.value: permission.scope for permission in Permission}


@dataclass(frozen=True, slots=True)
class Rights:
    """The permissions of a caller. ``held``: (permission, project or None, environment or None for all).

    ``projects`` are those in which the caller has a role. ``hidden`` are the private projects that the caller's root
    role does not read, also deleted ones.
    """

    is_admin: bool
    has_root_role: bool
    projects: frozenset[str]
    held: frozenset[tuple[str, str | None, str | None]]
    hidden: frozenset[str] = frozenset()

    def allow(self, permission: Permission, project: str | None, environment: str | None) -> bool:
        if self.is_admin:
            return True
        where = None if permission.scope is Scope.ROOT else project
        return (permission.value, where, None) in self.held or (
            environment is not None and (permission.value, where, environment) in self.held
        )

    def is_member(self, project: str) -> bool:
        """Whether a role in the project gives access to it; in the default project, also an Editor's root role."""
        return self.is_admin or project in self.projects or any(project == where for _, where, _ in self.held)


EVERYTHING = Rights(is_admin=True, has_root_role=True, projects=frozenset(), held=frozenset())
NOTHING = Rights(is_admin=False, has_root_role=False, projects=frozenset(), held=frozenset())


def read_rights_of_user(user_id: int) -> Rights:
    """Loads the rights with one query."""
    [(rights,)] = fetch_rows(RIGHTS.format(user="%(user)s"), {"user": user_id})
    return read_rights(rights)


def read_rights_of_users(user_ids: Iterable[int], *, without_group: int = 0) -> dict[int, Rights]:
    """Loads the rights of many accounts with one query. ``without_group``: computes them without this
    group's grants.
    """
    rights = RIGHTS.format(user="holder.id").replace(
        "m.user_id = holder.id", "m.user_id = holder.id AND m.group_id <> %(without)s"
    )
    statement = f"SELECT holder.id, ({rights}) FROM groups_user holder WHERE holder.id = ANY(%(ids)s)"  # noqa: S608 - a constant
    return {
        pk: read_rights(rights)
        for pk, rights in fetch_rows(statement, {"ids": list(user_ids), "without": without_group})
    }


def read_rights(rights: str) -> Rights:
    """Converts the rights selected by RIGHTS.

    As in the reference server, project permissions of a root role apply to the default project.
    """
    permissions, projects, has_root_role = set(), set(), False
    listed, private = orjson.loads(rights)
    for project, permission, environment in listed:
        if project is None:
            has_root_role = True
            is_root = _SCOPES.get(permission) is Scope.ROOT
            if permission is not None:
                permissions.add((permission, None if is_root else DEFAULT_PROJECT, environment))
        else:
            projects.add(project)
            # A project role grants nothing outside its project, even if it lists root permissions.
            if _SCOPES.get(permission) is not Scope.ROOT:
                permissions.add((permission, project, environment))
    is_admin = (Permission.ADMIN.value, None, None) in permissions
    members_of = projects | {project for _, project, _ in permissions}
    return Rights(
        is_admin=is_admin,
        has_root_role=has_root_role,
        projects=frozenset(projects),
        held=frozenset(permissions),
        hidden=frozenset(private) - members_of if has_root_role and not is_admin else frozenset(),
    )


class Caller:
    """The author of an action: a user, a service account, an API token or the system.

    A caller is never built from request data, which only says whether they skip required change requests, break
    expectations that the project enforces, or postpone the changes: `person` needs the permission.
    """

    is_authenticated = True  # read by DRF and templates
    skips_requests = breaks_expectations = postpones = False
    _system_name = SYSTEM_NAME
    _person: "Caller | None" = None

    def __init__(
        self, *, user: "User | None" = None, token: "ApiToken | None" = None, rights: Rights | None = None
    ) -> None:
        self.user = user
        self.token = token
        if rights is not None:
            self.rights = rights

    @classmethod
    def system(cls, name: str = SYSTEM_NAME) -> "Caller":
        """The caller of actions without a requesting user or token, such as management commands."""
        caller = cls(rights=EVERYTHING)
        caller._system_name = name
        return caller

    def with_all_rights(self) -> "Caller":
        """The same caller with all permissions, to apply approved changes."""
        caller = Caller(user=self.user, token=self.token, rights=EVERYTHING)
        caller._system_name, caller._person = self._system_name, self.person
        return caller

    def asking(self, **wishes: bool) -> "Caller":
        """The same caller with these wishes, such as ``skips_requests=True``."""
        caller = copy(self)
        if self._person is not None:
            caller._person = self._person.asking(**wishes)
        vars(caller).update(wishes)
        return caller

    @property
    def person(self) -> "Caller":
        """The caller with the rights that they have themselves."""
        return self._person or self

    @cached_property
    def rights(self) -> Rights:
        if self.user is not None:
            if not self.user.is_active:
                return NOTHING
            known = self.token.user_rights if self.token else None
            return read_rights_of_user(self.user.pk) if known is None else read_rights(known)
        return EVERYTHING if self.token is not None and self.token.kind == "admin" else NOTHING

    @property
    def id(self) -> int | None:
        return self.user.pk if self.user else None

    @property
    def pk(self) -> int | None:  # read by DRF's throttles and the debug page
        return self.id

    @property
    def name(self) -> str:
        if self.user:
            return self.user.username
        return self.token.name if self.token else self._system_name

    def __str__(self) -> str:
        return self.name

    @property
    def is_admin(self) -> bool:
        return self.rights.is_admin

    def can(
        self, permission: Permission, *, project: str | None = None, environment: str | None = None
    ) -> bool:
        return self.rights.allow(permission, project, environment)

    def check(
        self, permission: Permission, *, project: str | None = None, environment: str | None = None
    ) -> None:
        """Raises NoAccess naming the permission if it is not held."""
        if not self.can(permission, project=project, environment=environment):
            raise self._refuse([permission], project, environment)

    def check_any(
        self, permissions: Iterable[Permission], *, project: str | None = None, environment: str | None = None
    ) -> None:
        """Raises NoAccess naming the permissions if none of them is held."""
        permissions = list(permissions)
        if not any(self.can(p, project=project, environment=environment) for p in permissions):
            raise self._refuse(permissions, project, environment)

    def _refuse(
        self, permissions: list[Permission], project: str | None, environment: str | None
    ) -> NoAccess:
        """Makes the error, without the name of a project that the caller may not read."""
        if project is not None and not self.can_read(project):
            return missing(permissions)
        return missing(permissions, project=project, environment=environment)

    def can_anywhere(self, permissions: Iterable[Permission]) -> bool:
        """Whether one of the permissions is held in any project or globally."""
        names = {permission.value for permission in permissions}
        return self.is_admin or any(granted in names for granted, _, _ in self.rights.held)

    def check_anywhere(self, permissions: Iterable[Permission]) -> None:
        """Raises NoAccess naming the permissions if none of them is held in any project or globally."""
        permissions = list(permissions)
        if not self.can_anywhere(permissions):
            raise missing(permissions)

    def can_read(self, project: str) -> bool:
        rights = self.rights
        return (
            rights.is_admin
            or project in rights.projects
            or (rights.has_root_role and project not in rights.hidden)
        )

    @cached_property
    def readable_projects(self) -> frozenset[str] | None:
        """The ids of the projects that the caller may read; None means all projects.

        One query for a root role that does not read all projects.
        """
        if self.reads_all_projects:
            return None
        rights = self.rights
        return frozenset(_read_project_ids()) - rights.hidden if rights.has_root_role else rights.projects

    @property
    def reads_all_projects(self) -> bool:
        return self.rights.is_admin or (self.rights.has_root_role and not self.rights.hidden)

    def match_readable(self, field: str) -> Q:
        """A condition on rows with the id of a project in ``field``, which is not null: that the caller may read it.

        No query.
        """
        if self.reads_all_projects:
            return Q()
        rights = self.rights
        if rights.has_root_role:
            return ~Q(**{f"{field}__in": rights.hidden})
        return Q(**{f"{field}__in": rights.projects})

    @property
    def reads_installation(self) -> bool:
        """Whether the caller may read what belongs to no project: an admin, or somebody with a root role."""
        return self.rights.is_admin or self.rights.has_root_role

    def is_member(self, project: str) -> bool:
        return self.rights.is_member(project)


def _read_project_ids() -> Iterable[str]:
    projects = apps.get_model("projects", "Project")  # by name, because groups must not import projects
    return projects.objects.order_by().values_list("pk", flat=True)


def missing(
    permissions: Iterable[Permission], *, project: str | None = None, environment: str | None = None
) -> NoAccess:
    """The 403 error that names the permissions, any one of which is enough, as the pages of roles do.

    `You need the "Add strategies" permission in Checkout (production).` One query if it concerns a project.
    """
    permissions = list(permissions)
    scope = permissions[0].scope
    where = describe_place(
        project if scope is not Scope.ROOT else None, environment if scope is Scope.ENVIRONMENT else None
    )
    # An admin has them all, so the others say enough.
    named = [each for each in permissions if each is not Permission.ADMIN] or permissions
    names = join_words((f'"{name}"' for name in dict.fromkeys(map(name_permission, named))), word="or")
    return NoAccess.missing([p.value for p in permissions], f"You need the {names} permission{where}.")


def describe_place(project: str | None, environment: str | None = None) -> str:
    """`` in Checkout (production)``: the name of the project, and the environment. "" for no project. One query."""
    if project is None:
        return ""
    projects = apps.get_model("projects", "Project")  # by name, because groups must not import projects
    name = projects.objects.filter(pk=project).values_list("name", flat=True).first() or project
    return f" in {name} ({environment})" if environment else f" in {name}"
