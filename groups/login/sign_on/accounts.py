"""Finds, links or creates the account for an identity, and sets its groups and root role from the claims.

Each account and each identity has at most one link. Manually assigned memberships and roles stay.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import (
    InvalidOperation,
    NameExists,
    NoAccess,
    NotFound,
    Problem,
    ServiceUnavailable,
    UserExists,
    ValidationError,
)
from flagadmin.core.installation.state import ignore_maintenance
from groups.access import Caller
from groups.groups.actions import change_members
from groups.login.sign_on.provider import Identity, require_provider
from groups.login.sign_on.settings import SignOnSettings
from groups.models import Group, GroupMembership, User
from groups.people.actions import NewAccount, create_account, update_account
from groups.people.personal_tokens import end_custody
from groups.people.queries import access_account
from groups.roles.actions import find_root_role_id


@transactional
def sign_on(identity: Identity) -> User:
    """The account that logs in, with memberships and root role updated from the claims.

    Raises NoAccess, ValidationError (names that no account can have), ServiceUnavailable (wrong settings).
    """
    ignore_maintenance()
    provider = require_provider(SignOnSettings)
    check_domain(identity, provider)
    link = find_link(identity)
    if link is None:
        link = add_link(_find_by_email(identity, provider) or _create_account(identity, provider), identity)
    else:
        refresh_label(link, identity)
    user = link.user
    if not user.is_active or user.is_service:
        raise NoAccess(f"The account {user} is disabled. Ask an administrator.")
    end_custody(user, "the identity provider")
    if identity.groups is not None:
        synchronize(user, link, identity.groups, provider)
        user.refresh_from_db()
    return user


def _find_by_email(identity: Identity, provider: SignOnSettings) -> User | None:
    """The account with this email address, if it may be linked: the owner of the address gets the account."""
    if not (provider.link_by_email and identity.email and identity.email_is_verified):
        return None
    user = User.objects.people().filter(email__iexact=identity.email).first()
    return None if user is None or find_linked_identities(user).exists() else user


def _create_account(identity: Identity, provider: SignOnSettings) -> User:
    if not provider.create_accounts:
        fault = f"{identity.email_fault} " if provider.link_by_email and identity.email_fault else ""
        raise NoAccess(
            f"There is no account here for {identity.label}. {fault}{_describe_linking('Ask an administrator for one')}"
        )
    new = NewAccount(
        username=identity.username or identity.subject,
        name=identity.name,
        email=identity.email if identity.email_is_verified else None,
        root_role=provider.root_role or None,
    )
    try:
        return create_account(new, caller=Caller.system())
    except UserExists as error:
        raise NoAccess(f"{error.details[0].message} {_describe_linking('Ask an administrator')}") from error


def _describe_linking(otherwise: str) -> str:
    if not settings.PASSWORD_LOGIN:
        return f"{otherwise}."
    return f"{otherwise}, or log in to yours with its password and link this login on your account page."


def check_domain(identity: Identity, provider: SignOnSettings) -> None:
    """Raises NoAccess if the identity's email domain may not log in."""
    if not provider.email_domains:
        return
    if not identity.email_is_verified or identity.email_domain not in provider.email_domains:
        domains = ", ".join(sorted(provider.email_domains))
        raise NoAccess(
            f"You need a verified email address of {domains} to log in here. {identity.email_fault}".rstrip()
        )


def find_linked_identities(user: User) -> QuerySet[SocialAccount]:
    """The identities of the configured provider that log in to the account: one or none."""
    return SocialAccount.objects.filter(user=user, provider=require_provider(SignOnSettings).issuer)


def find_identity(user: User) -> dict[str, str] | None:
    """The linked identity in the form of audit events; None without a provider or link."""
    if settings.SIGN_ON is None or user.is_service:
        return None
    link = find_linked_identities(user).first()
    return None if link is None else make_identity_document(link)


def find_link(identity: Identity) -> SocialAccount | None:
    """The link with its user, locked against concurrent logins."""
    links = SocialAccount.objects.select_for_update(of=("self",)).select_related("user")
    return links.filter(provider=identity.issuer, uid=identity.subject).first()


def add_link(user: User, identity: Identity) -> SocialAccount:
    link: SocialAccount = SocialAccount.objects.create(
        user=user, provider=identity.issuer, uid=identity.subject, extra_data={"label": identity.label}
    )
    _record(EventType.USER_IDENTITY_LINKED, user, Caller(user=user), after=make_identity_document(link))
    return link


def refresh_label(link: SocialAccount, identity: Identity) -> None:
    """Updates the label by which people recognize the identity, because names may change."""
    if link.extra_data.get("label") != identity.label:
        link.extra_data = {**link.extra_data, "label": identity.label}
        link.save(update_fields=["extra_data"])


@transactional
def link_identity(user: User, identity: Identity) -> None:
    """Links the identity with the logged-in user. Raises NoAccess, NameExists."""
    check_domain(identity, require_provider(SignOnSettings))
    link = find_link(identity)
    if link is not None and link.user_id != user.pk:
        raise NameExists(f"{identity.label} already logs in to another account.")
    if link is None:
        if find_linked_identities(user).exists():
            raise NameExists("Your account is already linked. Unlink it first.")
        add_link(user, identity)


def describe_own_link(request: HttpRequest, user: User) -> dict[str, str] | None:
    """The variables of ``login/own_link.html``, None without a provider."""
    if settings.SIGN_ON is None:
        return None
    link = find_linked_identities(user).first()
    variables = {"issuer": settings.SIGN_ON.issuer}
    if link is None:
        return variables | {"check": make_link_check(request)}
    return variables | {
        "label": make_identity_document(link)["identity"],
        "blocker": find_unlink_blocker(user),
    }


def find_unlink_blocker(user: User) -> str:
    """The reason why the user cannot unlink the account; "" if they can."""
    if not settings.PASSWORD_LOGIN:
        return "there is no other way to log in here."
    return "" if user.has_usable_password() else "without a password you could not log in."


@transactional
def unlink_identity(user: User) -> None:
    """Revokes the groups and role given by the claims, and deletes the link. Raises NotFound, InvalidOperation."""
    link = get_or_404(find_linked_identities(user).select_for_update(), "Your account is not linked.")
    if blocker := find_unlink_blocker(user):
        raise InvalidOperation(f"Your account cannot be unlinked: {blocker}")
    _remove(link, caller=Caller(user=user))


@transactional
def unlink_identity_of(user_id: int, *, caller: Caller) -> User:
    """Unlinks another user's account, even if they cannot log in afterwards.

    Raises NoAccess, NotFound, InvalidOperation (the caller's own account, or one that is not linked).
    """
    user = access_account(caller, user_id, is_service=False)
    if user.pk == caller.id:
        raise InvalidOperation("Unlink your own account on your account's page.")
    link = find_linked_identities(user).select_for_update(of=("self",)).first()
    if link is None:
        raise InvalidOperation(f"{user} is not linked.")
    _remove(link, caller=caller)
    return user


def _remove(link: SocialAccount, *, caller: Caller) -> None:
    take_back(link.user, link)
    before = make_identity_document(link)
    link.delete()
    _record(EventType.USER_IDENTITY_UNLINKED, link.user, caller, before=before)


def make_link_check(request: HttpRequest) -> str:
    """A value known only to this session's pages, so that no other site can begin to link an account."""
    return salted_hmac(
        "groups.sign-on.link", request.session.session_key or "", algorithm="sha256"
    ).hexdigest()


def make_identity_document(link: SocialAccount) -> dict[str, str]:
    """``provider`` is its issuer; ``identity`` is its recognizable name."""
    return {"provider": link.provider, "identity": link.extra_data.get("label", link.uid)}


def _record(
    event: EventType,
    user: User,
    caller: Caller,
    *,
    before: dict[str, str] | None = None,
    after: dict[str, str] | None = None,
) -> None:
    record(Event(type=event, subject=user.username, before=before, after=after), actor=caller)


log = logging.getLogger("flagadmin.login")

ROLE_GIVEN = "root_role"  # key in the link's data: the id of the root role assigned by the claim


def synchronize(user: User, link: SocialAccount, values: frozenset[str], provider: SignOnSettings) -> None:
    """``values`` are the groups claim's. Raises ServiceUnavailable for an unknown root role in the settings."""
    _synchronize_groups(user, values)
    if provider.root_roles:
        _synchronize_root_role(user, link, values, provider)


def find_group_ids(values: frozenset[str]) -> set[int]:
    """The ids of the groups for these values: by their SSO names or, for groups without any, by name.

    SCIM groups get their members elsewhere.
    """
    names = list(values)
    matches = Q(mappings_sso__has_any_keys=names) | Q(mappings_sso=[], name__in=names)
    return set(Group.objects.filter(matches, scim_id=None).values_list("id", flat=True))


def take_back(user: User, link: SocialAccount) -> None:
    """Ends the memberships and the root role assigned by the claim."""
    _synchronize_groups(user, frozenset())
    _synchronize_root_role(user, link, frozenset(), require_provider(SignOnSettings))


def _synchronize_groups(user: User, values: frozenset[str]) -> None:
    claimed_ids = find_group_ids(values)
    memberships = GroupMembership.objects.filter(user=user, group__scim_id=None)
    memberships_now = dict(memberships.values_list("group_id", "by_provider"))
    given_ids = {group_id for group_id, by_provider in memberships_now.items() if by_provider}
    for group_id in sorted(claimed_ids - memberships_now.keys()):
        # Suppressed: the group has just been deleted, or SCIM now manages its members.
        with suppress(NotFound, ValidationError):
            change_members(group_id, add=[user.pk], caller=Caller.system())
            GroupMembership.objects.filter(group_id=group_id, user=user).update(by_provider=True)
    for group_id in sorted(given_ids - claimed_ids):
        with _unless_last_admin(user), suppress(NotFound, ValidationError):
            change_members(group_id, remove=[user.pk], caller=Caller.system())


def _synchronize_root_role(
    user: User, link: SocialAccount, values: frozenset[str], provider: SignOnSettings
) -> None:
    problems: list[Problem] = []
    mapped = next((role for value, role in provider.root_roles if value in values), None)
    claimed_id, default_id = (
        find_root_role_id(mapped, problems),
        find_root_role_id(provider.root_role or None, problems),
    )
    if problems:
        raise ServiceUnavailable(f"The settings of single sign-on are wrong: {problems[0].message}")
    given_id = link.extra_data.get(ROLE_GIVEN)
    if claimed_id is None and (given_id is None or user.root_role_id != given_id):
        return  # none was assigned, or an admin has assigned another one since
    target_id = default_id if claimed_id is None else claimed_id
    with _unless_last_admin(user):
        if user.root_role_id != target_id:
            update_account(user.pk, {"root_role": target_id}, is_service=False, caller=Caller.system())
        link.extra_data = {**link.extra_data, ROLE_GIVEN: claimed_id}
        link.save(update_fields=["extra_data"])


@contextmanager
def _unless_last_admin(user: User) -> Iterator[None]:
    """Keeps a role or membership if nobody could administer flagadmin without it."""
    try:
        yield
    except InvalidOperation as error:
        log.warning("%s keeps a role that the identity provider has taken back: %s", user, error.message)
