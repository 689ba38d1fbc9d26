"""Grants the groups and root role listed in the provider's claim, and revokes what an earlier claim granted.

Memberships and roles given by hand stay.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from allauth.socialaccount.models import SocialAccount
from django.db.models import Q

from flagadmin.core.errors import InvalidOperation, NotFound, Problem, ServiceUnavailable, ValidationError
from groups.access import Caller
from groups.groups.actions import change_members
from groups.login.sign_on.identity import require_oidc
from groups.login.sign_on.settings import OidcSettings
from groups.models import Group, GroupMembership, User
from groups.people.actions import update_account
from groups.roles.rules import find_root_role_id

log = logging.getLogger("flagadmin.login")

ROLE_GIVEN = "root_role"  # in the link's data: the id of the root role that the claim gave


def synchronize(user: User, link: SocialAccount, values: frozenset[str], oidc: OidcSettings) -> None:
    """``values`` are those of the groups claim. Raises ServiceUnavailable if a root role of the settings is unknown."""
    _synchronize_groups(user, values)
    if oidc.root_roles:
        _synchronize_root_role(user, link, values, oidc)


def find_group_ids(values: frozenset[str]) -> set[int]:
    """The ids of the groups that these values stand for: by their SSO names, without those by their name.

    SCIM groups get their members elsewhere.
    """
    names = list(values)
    matches = Q(mappings_sso__has_any_keys=names) | Q(mappings_sso=[], name__in=names)
    return set(Group.objects.filter(matches, scim_id=None).values_list("id", flat=True))


def take_back(user: User, link: SocialAccount) -> None:
    """Ends the memberships and the root role that the claim gave."""
    _synchronize_groups(user, frozenset())
    _synchronize_root_role(user, link, frozenset(), require_oidc())


def _synchronize_groups(user: User, values: frozenset[str]) -> None:
    claimed_ids = find_group_ids(values)
    memberships = GroupMembership.objects.filter(user=user, group__scim_id=None)
    memberships_now = dict(memberships.values_list("group_id", "by_provider"))
    given_ids = {group_id for group_id, by_provider in memberships_now.items() if by_provider}
    for group_id in sorted(claimed_ids - memberships_now.keys()):
        # Suppressed: the group has just been deleted, or SCIM gives it its members from now on.
        with suppress(NotFound, ValidationError):
            change_members(group_id, add=[user.pk], caller=Caller.system())
            GroupMembership.objects.filter(group_id=group_id, user=user).update(by_provider=True)
    for group_id in sorted(given_ids - claimed_ids):
        with _unless_last_admin(user), suppress(NotFound, ValidationError):
            change_members(group_id, remove=[user.pk], caller=Caller.system())


def _synchronize_root_role(
    user: User, link: SocialAccount, values: frozenset[str], oidc: OidcSettings
) -> None:
    problems: list[Problem] = []
    mapped = next((role for value, role in oidc.root_roles if value in values), None)
    claimed_id, default_id = (
        find_root_role_id(mapped, problems),
        find_root_role_id(oidc.root_role or None, problems),
    )
    if problems:
        raise ServiceUnavailable(f"The settings of single sign-on are wrong: {problems[0].message}")
    given_id = link.extra_data.get(ROLE_GIVEN)
    if claimed_id is None and (given_id is None or user.root_role_id != given_id):
        return  # none was given, or somebody gave another by hand since
    target_id = default_id if claimed_id is None else claimed_id
    with _unless_last_admin(user):
        if user.root_role_id != target_id:
            update_account(user.pk, {"root_role": target_id}, is_service=False, caller=Caller.system())
        link.extra_data = {**link.extra_data, ROLE_GIVEN: claimed_id}
        link.save(update_fields=["extra_data"])


@contextmanager
def _unless_last_admin(user: User) -> Iterator[None]:
    """Leaves a role or membership as it is if nobody could administer flagadmin without it."""
    try:
        yield
    except InvalidOperation as error:
        log.warning("%s keeps a role that the identity provider has taken back: %s", user, error.message)
