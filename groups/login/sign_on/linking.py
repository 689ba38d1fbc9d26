"""Links between accounts and identities at the provider. Each account and each identity has at most one."""

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation, NameExists, NoAccess
from groups.access import Caller
from groups.login.sign_on.identity import Identity, require_oidc
from groups.login.sign_on.settings import OidcSettings
from groups.login.sign_on.synchronize import take_back
from groups.models import User
from groups.people.queries import access_account


def check_domain(identity: Identity, oidc: OidcSettings) -> None:
    """Raises NoAccess if only other email domains may log in."""
    if not oidc.email_domains:
        return
    if not identity.email_is_verified or identity.email_domain not in oidc.email_domains:
        domains = ", ".join(sorted(oidc.email_domains))
        raise NoAccess(f"You need a verified email address of {domains} to log in here.")


def find_linked_identities(user: User) -> QuerySet[SocialAccount]:
    """The identities of the configured provider that log in to the account: one or none."""
    return SocialAccount.objects.filter(user=user, provider=require_oidc().issuer)


def find_identity(user: User) -> dict[str, str] | None:
    """The linked identity, as audit events have it; None without a provider, or if the account is not linked."""
    if settings.OIDC is None or user.is_service:
        return None
    link = find_linked_identities(user).first()
    return None if link is None else make_identity_document(link)


def find_link(identity: Identity) -> SocialAccount | None:
    """The link with its user, locked against logins at the same time."""
    links = SocialAccount.objects.select_for_update(of=("self",)).select_related("user")
    return links.filter(provider=identity.issuer, uid=identity.subject).first()


def add_link(user: User, identity: Identity) -> SocialAccount:
    link: SocialAccount = SocialAccount.objects.create(
        user=user, provider=identity.issuer, uid=identity.subject, extra_data={"label": identity.label}
    )
    _record(EventType.USER_IDENTITY_LINKED, user, Caller(user=user), after=make_identity_document(link))
    return link


def refresh_label(link: SocialAccount, identity: Identity) -> None:
    """Keeps what people recognize the identity by: names may change."""
    if link.extra_data.get("label") != identity.label:
        link.extra_data = {**link.extra_data, "label": identity.label}
        link.save(update_fields=["extra_data"])


@transactional
def link_identity(user: User, identity: Identity) -> None:
    """Lets the identity log in as the user who is logged in. Raises NoAccess, NameExists."""
    check_domain(identity, require_oidc())
    link = find_link(identity)
    if link is not None and link.user_id != user.pk:
        raise NameExists(f"{identity.label} already logs in to another account.")
    if link is None:
        if find_linked_identities(user).exists():
            raise NameExists("Your account is already linked. Unlink it first.")
        add_link(user, identity)


def describe_own_link(request: HttpRequest, user: User) -> dict[str, str] | None:
    """The variables of ``login/own_link.html``, None without a provider."""
    if settings.OIDC is None:
        return None
    link = find_linked_identities(user).first()
    variables = {"issuer": settings.OIDC.issuer}
    if link is None:
        return variables | {"check": make_link_check(request)}
    return variables | {
        "label": make_identity_document(link)["identity"],
        "blocker": find_unlink_blocker(user),
    }


def find_unlink_blocker(user: User) -> str:
    """Explains why users cannot unlink their account, "" if they can."""
    if not settings.PASSWORD_LOGIN:
        return "there is no other way to log in here."
    return "" if user.has_usable_password() else "without a password you could not log in."


@transactional
def unlink_identity(user: User) -> None:
    """Takes back what the claims gave, and the link. Raises NotFound, InvalidOperation."""
    link = get_or_404(find_linked_identities(user).select_for_update(), "Your account is not linked.")
    if blocker := find_unlink_blocker(user):
        raise InvalidOperation(f"Your account cannot be unlinked: {blocker}")
    _remove(link, caller=Caller(user=user))


@transactional
def unlink_identity_of(user_id: int, *, caller: Caller) -> User:
    """Unlinks somebody else's account, even if they cannot log in afterwards.

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
    """A value that only this session's pages know, so that no other site can begin to link an account."""
    return salted_hmac(
        "groups.sign-on.link", request.session.session_key or "", algorithm="sha256"
    ).hexdigest()


def make_identity_document(link: SocialAccount) -> dict[str, str]:
    """``provider`` is its issuer; ``identity`` is what people recognize it by."""
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
