"""Lists the holders of a role, where they hold it, and what they would lose without it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from flagadmin.core.errors import pluralize
from groups.access import Caller
from groups.models import Grant, Group, Role, User
from groups.models.people import UserQuerySet


@dataclass(frozen=True, slots=True)
class Holder:
    """A user, service account or group with the role in one project, or everywhere (``project`` None)."""

    name: str
    kind: str  # "user", "service account" or "group"
    id: int
    project: str | None
    since: datetime | None
    is_disabled: bool = False

    @property
    def sort_name(self) -> str:
        return self.name.casefold()

    @property
    def is_service(self) -> bool:
        return self.kind == "service account"

    @property
    def is_group(self) -> bool:
        return self.kind == "group"


def read_holders(role: Role, caller: Caller, text: str = "") -> list[Holder]:
    """Direct holders whose name contains the text, globally and in projects that the caller may read."""
    folded = text.casefold()
    holders = (*_list_root_holders(role), *_list_project_holders(role, caller))
    return [holder for holder in holders if folded in holder.sort_name]


@dataclass(frozen=True, slots=True)
class RoleUse:
    """The number of direct holders of a role. A group counts as one holder; its members are not counted.

    ``disabled`` is the number of users and service accounts that cannot log in.
    """

    users: int
    service_accounts: int
    groups: int
    projects: int
    disabled: int = 0

    def __bool__(self) -> bool:
        return bool(self.users or self.service_accounts or self.groups)


def count_holders(role: Role, caller: Caller | None = None) -> RoleUse:
    """Counts the holders of the role globally and in projects. A holder in several places counts once.

    With ``caller``, only in projects that the caller may read.
    """
    groups = set(role.groups.values_list("id", flat=True))
    people: set[int | None] = set()
    services: set[int | None] = set()
    for user_id, is_service in role.users.values_list("id", "is_service"):
        (services if is_service else people).add(user_id)
    projects = set()
    readable = role.grants.filter(caller.match_readable("project")) if caller else role.grants.all()
    grants = readable.values_list("project_id", "user_id", "user__is_service", "group_id")
    for project_id, user_id, is_service, group_id in grants:
        projects.add(project_id)
        if group_id is not None:
            groups.add(group_id)
        else:
            (services if is_service else people).add(user_id)
    disabled = User.objects.filter(pk__in=[*filter(None, people | services)], is_active=False).count()
    return RoleUse(len(people), len(services), len(groups), len(projects), disabled)


def _list_root_holders(role: Role) -> Iterator[Holder]:
    users = role.users.values_list("id", "name", "username", "is_service", "is_active")
    for pk, name, username, is_service, is_active in users:
        yield Holder(name or username, _describe_kind(is_service), pk, None, None, not is_active)
    for pk, name in role.groups.values_list("id", "name"):
        yield Holder(name, "group", pk, None, None)


def _list_project_holders(role: Role, caller: Caller) -> Iterator[Holder]:
    grants = role.grants.filter(caller.match_readable("project")).values_list(
        "project_id",
        "created_at",
        "user_id",
        "user__name",
        "user__username",
        "user__is_service",
        "user__is_active",
        "group_id",
        "group__name",
    )
    for project, since, user, name, username, is_service, is_active, group, group_name in grants:
        if user is not None:
            yield Holder(name or username, _describe_kind(is_service), user, project, since, not is_active)
        else:
            yield Holder(group_name, "group", group, project, since)


def _describe_kind(is_service: bool) -> str:
    return "service account" if is_service else "user"


@dataclass(frozen=True, slots=True)
class Reach:
    """The accounts that have a role, directly or through a group, and those without any other role."""

    accounts: int
    without_other: int

    @property
    def sentence(self) -> str:
        """The loss if the role were revoked from everyone."""
        if not self.accounts:
            return "Nobody has this role, so nobody loses access."
        has = "has" if self.accounts == 1 else "have"
        sentence = f"{pluralize(self.accounts, 'account')} {has} this role, directly or through a group"
        if not self.without_other:
            return f"{sentence}. All of them have other roles too."
        who = "it" if self.accounts == 1 else f"{self.without_other:,} of them"
        return f"{sentence}; {who} would lose access to all projects."


def measure_reach(role: Role) -> Reach:
    accounts = find_holders(Role.objects.filter(pk=role.pk))
    other_holders = find_holders(Role.objects.exclude(pk=role.pk))
    return Reach(accounts.count(), accounts.exclude(pk__in=other_holders.values("pk")).count())


def find_holders(roles: QuerySet[Role]) -> UserQuerySet:
    """The accounts that hold one of these roles anywhere, directly or through a group."""
    ids = roles.values("pk")
    grants = Grant.objects.filter(role__in=ids)
    groups = Group.objects.filter(
        Q(root_role__in=ids) | Q(pk__in=grants.filter(group__isnull=False).values("group"))
    )
    return User.objects.filter(
        Q(root_role__in=ids)
        | Q(pk__in=grants.filter(user__isnull=False).values("user"))
        | Q(pk__in=groups.filter(members__isnull=False).values("members"))
    )


def read_roles(user: User, *, project: str | None = None) -> list[tuple[Role, str | None]]:
    """The roles that the user holds, directly or through a group, each with its project (None for root roles).

    With a project, only the roles there.
    """
    is_held = Q(user=user) | Q(group__members=user)
    grants = Grant.objects.filter(is_held, **({"project": project} if project else {})).select_related("role")
    keys = {(grant.role, grant.project_id): None for grant in grants.order_by("project_id", "role_id")}
    if project:
        return list(keys)
    root = Role.objects.filter(Q(users=user) | Q(groups__members=user)).distinct()
    return [*((role, None) for role in root), *keys]
