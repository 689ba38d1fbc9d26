"""Moves accounts, their belongings, and permissions. People with an account here keep it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from groups.groups.actions import NewGroup, change_members, create_group
from groups.login.passwords import adopt_password
from groups.models import ApiToken, Grant, Group, Role, StartUpKey, User
from groups.models.roles import HeldPermission
from groups.people.actions import NewAccount, create_account
from groups.permissions import BuiltIn, Permission, Scope
from groups.roles.actions import create_role, update_role
from groups.tokens import PERSONAL, hash_secret, make_visible_prefix
from importer.moving.reading.database import FavoriteRow, GroupRow, Hidden, PersonalTokenRow, RoleRow, UserRow
from importer.moving.reading.installation import Installation
from importer.moving.reading.shapes import SourcePerson
from importer.moving.report import Kind, Line
from importer.moving.writing.keeping import DELETED, EDITED, SYSTEM, Edits, keep, try_alone
from projects.members.actions import Holders, add_roles
from projects.models import Environment, FavoriteFlag, FavoriteProject, Flag, Project

ROOT_ROLES = (BuiltIn.ADMIN, BuiltIn.EDITOR, BuiltIn.VIEWER)
"""Built-in roles have the same ids there."""


def move_people(installation: Installation, edits: Edits, roles: dict[int, int]) -> Iterator[Line]:
    """``roles`` are ids here by ids there, without built-in roles."""
    hidden = installation.hidden
    for person in installation.people:
        row = hidden.users.get(person.id) if hidden else None
        password = (row and row.password_hash) or ""
        role = _find_role(person, roles)
        present = find_account(person.username, person.email)
        if present is not None:
            yield from _keep(person, present, role, password)
        elif edits.has("user-", person.username or person.email or ""):
            yield Line(Kind.CONFLICT, f"person {person.label}", DELETED)
        else:
            yield from try_alone(f"person {person.label}", partial(_create, person, role, password))
    if hidden is not None:
        yield from _move_service_accounts(hidden, edits, roles)


def find_account(username: str | None, email: str | None) -> User | None:
    names = [name for name in (email, username) if name]
    return next((user for name in names if (user := User.objects.known_as(name).first())), None)


def find_accounts(hidden: Hidden) -> dict[int, User]:
    """Accounts here by ids there."""
    accounts = ((row.id, find_account(row.username, row.email)) for row in hidden.users.values())
    return {key: user for key, user in accounts if user is not None}


def _create(person: SourcePerson, role: int | None, password: str) -> Iterator[Line]:
    user = create_account(
        NewAccount(
            username=person.username or person.email or "",
            name=person.name or "",
            email=person.email,
            root_role=role,
        ),
        caller=SYSTEM,
    )
    has_password = adopt_password(user, password, caller=SYSTEM)
    how = "with the same password" if has_password else "without a password: send a login link"
    yield Line(Kind.CREATE, f"person {person.label}", f"{_name_role(role)}, {how}")
    if role is None and person.root_role is not None:
        yield Line(
            Kind.CANNOT, f"root role of {person.label}", "is a custom one, which only --database brings"
        )


def _keep(person: SourcePerson, present: User, role: int | None, password: str) -> Iterator[Line]:
    """Sets the password from the database on an account that came over the API earlier."""
    subject = f"person {person.label}"
    if present.is_service:
        yield Line(Kind.CANNOT, subject, "a service account here has this name")
        return
    if password and present.seen_at is None and adopt_password(present, password, caller=SYSTEM):
        yield Line(Kind.CHANGE, subject, "password none → the same as there")
    if role is not None and role != present.root_role_id:
        detail = f"has {_name_role(present.root_role_id)} here and {_name_role(role)} there, and stays"
        yield Line(Kind.NOTE, subject, detail)


def _move_service_accounts(hidden: Hidden, edits: Edits, roles: dict[int, int]) -> Iterator[Line]:
    for row in hidden.users.values():
        name = row.username or row.name or ""
        if not row.is_service or User.objects.known_as(name).exists():
            continue
        subject = f"service account {name}"
        if edits.has("service-account-", name):
            yield Line(Kind.CONFLICT, subject, DELETED)
            continue
        role = _find_role(_as_person(row, hidden), roles)
        new = NewAccount(username=name, name=row.name or "", is_service=True, root_role=role)
        yield from try_alone(subject, partial(_create_service_account, subject, new))


def _create_service_account(subject: str, new: NewAccount) -> Iterator[Line]:
    user = create_account(new, caller=SYSTEM)
    yield Line(Kind.CREATE, subject, _name_role(user.root_role_id))


def _as_person(row: UserRow, hidden: Hidden) -> SourcePerson:
    return SourcePerson(id=row.id, username=row.username, root_role=hidden.find_root_role(row.id))


def _find_role(person: SourcePerson, roles: dict[int, int]) -> int | None:
    role = person.root_role
    return role if role in ROOT_ROLES else roles.get(role or 0)


def _name_role(role: int | None) -> str:
    return "no root role" if role is None else Role.objects.get(pk=role).name


def move_own_things(installation: Installation, hidden: Hidden) -> Iterator[Line]:
    accounts = find_accounts(hidden)
    now = timezone.now()
    for row in hidden.personal_tokens:
        if (user := accounts.get(row.user_id)) is not None:
            yield from _move_personal_token(row, user, now)
    favorites = [row for row in hidden.favorites if row.user_id in accounts]
    moved = installation.flag_names | {""}
    yield from _move_favorites([row for row in favorites if row.feature in moved], accounts)


def _move_personal_token(row: PersonalTokenRow, user: User, now: datetime) -> Iterator[Line]:
    subject = f"personal token {row.description or 'without a name'} of {user}"
    digest = row.digest or hash_secret(row.secret)
    if row.expires_at is not None and row.expires_at <= now:
        yield Line(Kind.CANNOT, subject, "has expired")
    elif not row.secret.startswith(PERSONAL):
        yield Line(Kind.CANNOT, subject, f"does not begin with {PERSONAL}")
    elif ApiToken.objects.filter(secret_hash=digest).exists():
        return
    elif StartUpKey.objects.filter(secret_hash=digest).exists():
        yield Line(Kind.CANNOT, subject, "was revoked here")
    else:
        name, prefix = _name_token(row, user), make_visible_prefix(row.secret)
        ApiToken.objects.create(
            kind=ApiToken.Kind.PERSONAL,
            name=name,
            user=user,
            secret_hash=digest,
            prefix=prefix,
            expires_at=row.expires_at,
            seen_at=row.seen_at,
            created_by=SYSTEM.name,
        )
        StartUpKey.objects.create(secret_hash=digest)
        after = {"name": name, "prefix": prefix, "user": user.username}
        record(Event(type=EventType.PAT_CREATED, subject=user.username, after=after), actor=SYSTEM)
        yield Line(Kind.CREATE, subject)


def _name_token(row: PersonalTokenRow, user: User) -> str:
    """A name that is unique among the account's tokens."""
    name = row.description[:200] or "moved"
    taken = user.tokens.filter(kind=ApiToken.Kind.PERSONAL, name=name).exists()
    return f"{name} ({make_visible_prefix(row.secret)})" if taken else name


def _move_favorites(rows: list[FavoriteRow], accounts: dict[int, User]) -> Iterator[Line]:
    flags = dict(Flag.objects.filter(name__in={row.feature for row in rows}).values_list("name", "id"))
    projects = set(Project.objects.filter(id__in={row.project for row in rows}).values_list("id", flat=True))
    known_flags = {*FavoriteFlag.objects.values_list("user_id", "flag_id")}
    known_projects = {*FavoriteProject.objects.values_list("user_id", "project_id")}
    of_flags = {(accounts[row.user_id].pk, flags[row.feature]) for row in rows if row.feature in flags}
    of_projects = {(accounts[row.user_id].pk, row.project) for row in rows if row.project in projects}
    FavoriteFlag.objects.bulk_create(
        FavoriteFlag(user_id=user, flag_id=flag) for user, flag in sorted(of_flags - known_flags)
    )
    FavoriteProject.objects.bulk_create(
        FavoriteProject(user_id=user, project_id=project)
        for user, project in sorted(of_projects - known_projects)
    )
    if new := len(of_flags - known_flags) + len(of_projects - known_projects):
        yield Line(Kind.CREATE, "favorites", f"{new:,}")


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
    """The permissions that such a role can have here, and the names of the others."""
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
    """Members who exist only here stay."""
    accounts = find_accounts(hidden)
    for row in hidden.groups:
        members = {accounts[key].pk for key in hidden.members.get(row.id, []) if key in accounts}
        present = Group.objects.filter(name__iexact=row.name).order_by("id").first()
        subject, is_edited = f"group {row.name}", edits.has("group-", row.name)
        if present is not None and present.name != row.name:
            yield Line(Kind.CONFLICT, subject, f"a group named {present.name} is here")
            continue
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
    """Gives people and groups their project roles from there, in addition to those here."""
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
    """Equivalent roles here of known people and groups there, by project."""
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
