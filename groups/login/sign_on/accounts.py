"""Finds, links or creates the account for an identity, and gives it the groups in the claims."""

from django.conf import settings

from flagadmin.core.change_options import changing
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import NoAccess, UserExists
from groups.access import Caller
from groups.login.sign_on.identity import Identity, require_oidc
from groups.login.sign_on.linking import (
    add_link,
    check_domain,
    find_link,
    find_linked_identities,
    refresh_label,
)
from groups.login.sign_on.settings import OidcSettings
from groups.login.sign_on.synchronize import synchronize
from groups.models import User
from groups.people.actions import NewAccount, create_account


@changing(ignores_maintenance=True)
@transactional
def sign_on(identity: Identity) -> User:
    """The account that logs in, after its memberships and root role have been made what the claims say.

    Raises NoAccess, ValidationError (names that no account can have), ServiceUnavailable (wrong settings).
    """
    oidc = require_oidc()
    check_domain(identity, oidc)
    link = find_link(identity)
    if link is None:
        link = add_link(_find_by_email(identity, oidc) or _create_account(identity, oidc), identity)
    else:
        refresh_label(link, identity)
    user = link.user
    if not user.is_active or user.is_service:
        raise NoAccess(f"The account {user} is disabled. Ask an administrator.")
    if identity.groups is not None:
        synchronize(user, link, identity.groups, oidc)
        user.refresh_from_db()
    return user


def _find_by_email(identity: Identity, oidc: OidcSettings) -> User | None:
    """The account with this email address, if it may be linked: whoever controls the address gets the account."""
    if not (oidc.link_by_email and identity.email and identity.email_is_verified):
        return None
    user = User.objects.people().filter(email__iexact=identity.email).first()
    return None if user is None or find_linked_identities(user).exists() else user


def _create_account(identity: Identity, oidc: OidcSettings) -> User:
    if not oidc.create_accounts:
        raise NoAccess(
            f"There is no account here for {identity.label}. {_describe_linking('Ask an administrator for one')}"
        )
    new = NewAccount(
        username=identity.username or identity.subject,
        name=identity.name,
        email=identity.email if identity.email_is_verified else None,
        root_role=oidc.root_role or None,
    )
    try:
        return create_account(new, caller=Caller.system())
    except UserExists as error:
        raise NoAccess(f"{error.details[0].message} {_describe_linking('Ask an administrator')}") from error


def _describe_linking(otherwise: str) -> str:
    if not settings.PASSWORD_LOGIN:
        return f"{otherwise}."
    return f"{otherwise}, or log in to yours with its password and link this login on your account page."
