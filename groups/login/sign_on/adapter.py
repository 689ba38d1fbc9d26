"""The social account adapter for allauth: logging in through the identity provider."""

import logging
from typing import TYPE_CHECKING, Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base.constants import AuthError, AuthProcess
from django.conf import settings
from django.contrib import messages
from django.db.models import Model
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse

from flagadmin.core.errors import BadGateway, NoAccess, ValidationError
from groups.login.sign_on.accounts import link_identity, sign_on
from groups.login.sign_on.pages import keep_hint
from groups.login.sign_on.provider import (
    EXPIRED,
    Identity,
    IdentityLogin,
    Provider,
    is_storable,
    make_provider,
    require_provider,
)
from groups.login.sign_on.settings import SamlSettings, SignOnSettings
from groups.models import User
from groups.sessions.store import PROVIDER_SESSION

if TYPE_CHECKING:
    from groups.login.sign_on.provider import ProviderSession

log = logging.getLogger("flagadmin.login")


class SocialAccountAdapter(DefaultSocialAccountAdapter):
    """Named in ``settings.SOCIALACCOUNT_ADAPTER``. Its errors are AppErrors, which the pages show."""

    def get_provider(self, request: HttpRequest, provider: str, client_id: str | None = None) -> Any:
        if isinstance(settings.SIGN_ON, SamlSettings):
            from groups.login.sign_on.saml import SamlProvider

            return SamlProvider(request)
        return make_provider(request)

    def list_apps(self, request: HttpRequest, *args: Any, **kwargs: Any) -> list[SocialApp]:
        return []  # the provider is in the settings, not in the database

    def get_requests_session(self) -> "ProviderSession":
        from groups.login.sign_on.provider import ProviderSession

        return ProviderSession()

    def serialize_instance(self, instance: Model) -> dict[str, Any]:
        """Serializes for the session during the second factor. Leaves out the password, even its hash."""
        fields: dict[str, Any] = super().serialize_instance(instance)
        return {name: value for name, value in fields.items() if name != "password"}

    def pre_social_login(self, request: HttpRequest, sociallogin: IdentityLogin) -> None:
        """The identity is proven: finds, creates or links its account. allauth then starts the session."""
        identity = Identity.of(sociallogin.claims, require_provider(SignOnSettings))
        request.proven_identity = identity  # type: ignore[attr-defined]
        if sociallogin.state["process"] == AuthProcess.CONNECT:
            raise ImmediateHttpResponse(self._link(request, sociallogin, identity))
        sociallogin.user = sign_on(identity)
        keep_hint(request, sociallogin.id_token)
        if is_storable(session_id := sociallogin.claims.get("sid")):
            request.session[PROVIDER_SESSION] = session_id

    def _link(
        self, request: HttpRequest, sociallogin: IdentityLogin, identity: Identity
    ) -> HttpResponseRedirect:
        user = request.user
        if not isinstance(user, User) or user.pk != sociallogin.state["user_id"]:
            raise ValidationError(EXPIRED)
        link_identity(user, identity)
        messages.success(request, f"You can now log in as {identity.label} through the identity provider.")
        return HttpResponseRedirect(reverse("account"))

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Provider,
        error: str | None = None,
        exception: BaseException | None = None,
        extra_context: dict[str, Any] | None = None,
    ) -> None:
        """Raises the error in our words. The provider's own words go only to the log, because anyone can forge them."""
        if not (extra_context or {}).get("state"):
            raise ValidationError(EXPIRED)
        if exception is not None:
            raise exception
        log.warning(
            "The identity provider: %s %r", request.GET.get("error"), request.GET.get("error_description")
        )
        if error == AuthError.CANCELLED:
            raise NoAccess("The identity provider did not let you in, or you canceled.")
        raise BadGateway("The identity provider reported an error. The server log says which.")
