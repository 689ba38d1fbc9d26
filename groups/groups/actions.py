"""Actions on groups: create, update, change members, delete. They require the Admin role.

Reads groups.

The approvals that depend on a group. The app above, which knows change requests, provides the functions.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

from django.db.models import Prefetch, Q, QuerySet

from flagadmin.core.audit.record import Event, EventType, record, record_change
from flagadmin.core.db.lookups import get_or_404, length_problems
from flagadmin.core.db.statements import execute
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import (
    AppError,
    InvalidOperation,
    NameExists,
    Problem,
    check_problems,
    collect_errors,
    list_some,
)
from flagadmin.core.hook import Hook
from groups.access import Caller, Permission
from groups.models import Grant, Group, GroupMembership, User
from groups.people.actions import check_admins_without_group, keeping_admins
from groups.permissions import ROLE_READERS
from groups.roles.actions import find_root_role_id

Place = tuple[str, str]
"""A project and one of its environments that accepts change requests."""
MAX_PLACES = 5  # in a sentence


@dataclass(frozen=True, slots=True)
class Approvals:
    """The places that name the group as approvers, and those where nobody else could approve."""

    places: Sequence[Place] = ()
    only_here: Sequence[Place] = ()


def _find_none(group_id: int) -> Approvals:
    return Approvals()


def _find_no_place(places: Collection[Place]) -> list[Place]:
    return []


find_approvals: Hook[[int], Approvals] = Hook("groups.groups.actions.find_approvals", _find_none)
find_without_approvers: Hook[[Collection[Place]], list[Place]] = Hook(
    "groups.groups.actions.find_without_approvers", _find_no_place
)
"""The places, among these, where nobody may approve."""


def check_approvers_without_group(group: Group) -> None:
    """Raises InvalidOperation if nobody could approve the changes of an environment without the group."""
    _refuse(find_approvals(group.pk).only_here)


def check_approvers_left(places: Collection[Place]) -> None:
    """Raises InvalidOperation if one of the places, all of which had an approver, has none left."""
    _refuse(find_without_approvers(places))


def list_places_with_approvers(group_id: int) -> list[Place]:
    """The places that name the group as approvers and have an approver."""
    places = find_approvals(group_id).places
    without = set(find_without_approvers(places))
    return [place for place in places if place not in without]


def describe_places(places: Sequence[Place]) -> str:
    """``production in project shop``."""
    return list_some([f"{environment} in project {project}" for project, environment in places], MAX_PLACES)


def _refuse(places: Sequence[Place]) -> None:
    if places:
        raise InvalidOperation(
            f"Nobody could approve changes of {describe_places(places)} any more. Name other approvers there first."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGroup:
    """The values of a new group. ``root_role``: id or name, or None. ``users``: ids of the members."""

    name: str
    description: str = ""
    mappings_sso: tuple[str, ...] = ()
    root_role: int | str | None = None
    users: tuple[int, ...] = ()


class GroupChanges(TypedDict, total=False):
    """New values of a group. ``root_role``: id or name, or None. ``users``: ids of all members."""

    name: str
    description: str
    mappings_sso: Iterable[str]
    root_role: int | str | None
    users: Iterable[int]
    external_id: str | None
    scim_id: str


def access_group_for_update(caller: Caller, group_id: int, *, for_deletion: bool = False) -> Group:
    """Returns the group, locked. Raises NoAccess, NotFound.

    ``for_deletion`` takes a stronger lock, which also waits for transactions that add members or grants.
    """
    caller.check(Permission.ADMIN)
    groups = Group.objects.select_for_update(no_key=not for_deletion)
    return get_or_404(groups, f"Group with id {group_id} not found.", pk=group_id)


@transactional
def create_group(new: NewGroup, *, caller: Caller) -> Group:
    """Creates a group. Raises NoAccess, ValidationError, NameExists."""
    caller.check(Permission.ADMIN)
    problems: list[Problem] = []
    group = Group(
        name=new.name.strip(),
        description=new.description,
        mappings_sso=list(new.mappings_sso),
        root_role_id=find_root_role_id(new.root_role, problems),
        created_by=caller.name,
    )
    members = _lock_members(new.users, problems)
    _check_group(group, problems)
    group.save()
    _add_members(group, members, caller)
    record(Event(type=EventType.GROUP_CREATED, subject=group.name, after=group.document()), actor=caller)
    return group


@transactional
def update_group(
    group_id: int,
    changes: GroupChanges,
    *,
    expected: Expected = None,
    by_provider: bool = False,
    caller: Caller,
) -> Group:
    """Updates a group.

    The name and members of a SCIM group come from the identity provider: only it can change them (``by_provider``).
    Raises NoAccess, NotFound, EditConflict, ValidationError, NameExists, InvalidOperation.
    """
    caller.check(Permission.ADMIN)
    with keeping_admins(caller):
        group = access_group_for_update(caller, group_id)
        before = group.document()
        check_expected(expected, before)
        _apply_changes(group, changes, caller, by_provider=by_provider)
    event = Event(type=EventType.GROUP_UPDATED, subject=group.name, before=before, after=group.document())
    record_change(event, actor=caller)
    return group


@transactional
def change_members(
    group_id: int,
    *,
    add: Iterable[int] = (),
    remove: Iterable[int] = (),
    by_provider: bool = False,
    caller: Caller,
) -> Group:
    """Adds and removes members. Neither locks nor reads the others; the event lists only the changed members.

    Raises the errors of update_group.
    """
    caller.check(Permission.ADMIN)
    to_add, to_remove = set(add) - set(remove), set(remove)
    with keeping_admins(caller):
        group = access_group_for_update(caller, group_id)
        rows = group.memberships.filter(user_id__in=to_add | to_remove)
        present_ids = set(rows.values_list("user_id", flat=True))
        to_add, to_remove = to_add - present_ids, to_remove & present_ids
        if not to_add and not to_remove:
            return group
        problems: list[Problem] = []
        if group.scim_id and not by_provider:
            problems.append(_make_fixed_members_problem())
        members = _lock_members(sorted(to_add), problems)
        check_problems(problems)
        with _keeping_approvers(group, by_provider=by_provider or not to_remove):
            group.memberships.filter(user_id__in=to_remove).delete()
            _add_members(group, members, caller)
    document = group.document(with_members=False)
    event = Event(
        type=EventType.GROUP_UPDATED,
        subject=group.name,
        before=document | {"users": sorted(to_remove)},
        after=document | {"users": sorted(members)},
    )
    record(event, actor=caller)
    return group


@contextmanager
def _keeping_approvers(group: Group, *, by_provider: bool) -> Iterator[None]:
    """Wraps a manual change of members. Raises InvalidOperation at its end if an environment has no approver left.

    Changes by the identity provider always take effect at once.
    """
    places = [] if by_provider else list_places_with_approvers(group.pk)
    yield
    check_approvers_left(places)


def _make_fixed_members_problem() -> Problem:
    return Problem("users", "The members of a SCIM group come from the identity provider.")


@transactional
def delete_group(group_id: int, *, expected: Expected = None, caller: Caller) -> None:
    """Deletes a group with its memberships and grants. Users, projects and roles stay.

    Raises NoAccess, NotFound, EditConflict, InvalidOperation (the last group that grants the Admin role, or the only
    approvers of an environment).
    """
    caller.check(Permission.ADMIN)
    with keeping_admins(caller):
        group = access_group_for_update(caller, group_id, for_deletion=True)
        current = group.document()
        check_expected(expected, current)
        check_approvers_without_group(group)
        places = find_approvals(group.pk).places
        before = {
            **current,
            **(
                {"approves": [f"{project}:{environment}" for project, environment in places]}
                if places
                else {}
            ),
            "grants": list(group.grants.order_by("project_id", "role_id").values("project_id", "role_id")),
            "ownedFlags": list(group.owned_flags.order_by("name").values_list("name", flat=True)),
        }
        group.delete()
    record(Event(type=EventType.GROUP_DELETED, subject=group.name, before=before), actor=caller)


@dataclass(frozen=True, slots=True)
class GroupDeletion:
    """The consequences of deleting a group: its members, its grants, and the members left without any access.

    ``approvals`` are the places that name it as approvers; ``blockers`` are the reasons why it cannot be deleted.
    """

    group: Group
    members: list[User]
    grants: list[Grant]  # with role and project loaded
    losing_all: list[User]
    approvals: Sequence[Place]
    blockers: list[AppError]


def plan_group_deletion(group: Group, *, caller: Caller) -> GroupDeletion:
    """Collects the consequences without writing. Disabled accounts have no access to lose."""
    members = list(User.objects.filter(groups=group).order_by("username"))
    grants = list(group.grants.select_related("role", "project").order_by("project_id", "role__name"))
    gives_anything = bool(grants) or group.root_role_id is not None
    losing_all = (
        [user for user in _find_without_other_access(group) if user.is_active] if gives_anything else []
    )
    blockers = collect_errors(
        partial(check_admins_without_group, group, caller), partial(check_approvers_without_group, group)
    )
    return GroupDeletion(group, members, grants, losing_all, find_approvals(group.pk).places, blockers)


def _find_without_other_access(group: Group) -> QuerySet[User]:
    other_groups = Group.objects.exclude(pk=group.pk)
    return (
        User.objects.filter(groups=group, root_role=None)
        .exclude(pk__in=Grant.objects.filter(user__isnull=False).values("user"))
        .exclude(groups__in=other_groups.filter(root_role__isnull=False))
        .exclude(groups__in=other_groups.filter(grants__isnull=False))
        .order_by("username")
    )


def _apply_changes(group: Group, changes: GroupChanges, caller: Caller, *, by_provider: bool) -> None:
    problems: list[Problem] = []
    is_fixed = bool(group.scim_id) and not by_provider
    if "name" in changes:
        if is_fixed and changes["name"] != group.name:
            problems.append(Problem("name", "The name of a SCIM group comes from the identity provider."))
        group.name = changes["name"].strip()
    if "description" in changes:
        group.description = changes["description"]
    if "mappings_sso" in changes:
        group.mappings_sso = list(changes["mappings_sso"])
    if "root_role" in changes:
        group.root_role_id = find_root_role_id(changes["root_role"], problems)
    for column in ("external_id", "scim_id"):
        if column in changes:
            setattr(group, column, changes[column])
    member_ids = _lock_members(changes["users"], problems) if "users" in changes else None
    present_ids = group.member_ids()
    if member_ids is not None and is_fixed and member_ids != present_ids:
        problems.append(_make_fixed_members_problem())
    _check_group(group, problems)
    group.save()
    if member_ids is not None:
        with _keeping_approvers(group, by_provider=by_provider or present_ids <= member_ids):
            group.memberships.filter(user_id__in=present_ids - member_ids).delete()
            _add_members(group, member_ids - present_ids, caller)


def _lock_members(ids: Iterable[int], problems: list[Problem]) -> set[int]:
    """Locks these accounts, so that they cannot be deleted concurrently. Returns the ids found."""
    user_ids = list(ids)
    known_ids = set(
        User.objects.select_for_update(no_key=True)
        .filter(pk__in=user_ids)
        .order_by("id")
        .values_list("id", flat=True)
    )
    problems.extend(
        Problem(f"users[{index}]", f"Account with id {user_id} not found.")
        for index, user_id in enumerate(user_ids)
        if user_id not in known_ids
    )
    return known_ids


def _add_members(group: Group, ids: set[int], caller: Caller) -> None:
    GroupMembership.objects.bulk_create(
        GroupMembership(group=group, user_id=user_id, created_by=caller.name) for user_id in sorted(ids)
    )


def _check_group(group: Group, problems: list[Problem]) -> None:
    """Raises ValidationError, NameExists."""
    if not group.name:
        problems.append(Problem("name", "A group needs a name."))
    problems += length_problems(group, name="name", external_id="externalId")
    check_problems(problems)
    if not Group.objects.filter(pk=group.pk, name=group.name).exists():
        _check_name(group)


def _check_name(group: Group) -> None:
    """Raises NameExists if another group has the name. Ignores case, like user names.

    There is no unique index: groups of earlier versions may differ only in case, and a migration reports them. The lock
    makes concurrent transactions with the same name wait.
    """
    execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"group {group.name.lower()}"])
    others = Group.objects.filter(name__iexact=group.name).exclude(pk=group.pk or 0)
    if taken := others.values_list("name", flat=True).first():
        raise NameExists(f"A group named {taken} already exists.")


def read_groups(caller: Caller) -> QuerySet[Group]:
    """All groups with their members and their grants in projects that the caller may read. Raises NoAccess."""
    caller.check_any(ROLE_READERS)
    grants = Grant.objects.filter(caller.match_readable("project")).select_related("role")
    return Group.objects.prefetch_related("memberships__user", Prefetch("grants", grants))


def find_offered_groups(caller: Caller) -> QuerySet[Group]:
    """The groups whose names the caller may see: all, or their own and those with a role in a project they read."""
    if any(map(caller.can, ROLE_READERS)) or caller.reads_installation:
        return Group.objects.all()
    own = Q(memberships__user=caller.id or 0) | Q(grants__project__in=caller.rights.projects)
    return Group.objects.filter(pk__in=Group.objects.filter(own).values("pk"))


def access_group(caller: Caller, group_id: int, *, with_members: bool = True) -> Group:
    """Returns the group, by default with its members and grants. Raises NoAccess, NotFound."""
    groups = read_groups(caller) if with_members else read_groups(caller).prefetch_related(None)
    return get_or_404(groups, f"Group with id {group_id} not found.", pk=group_id)
