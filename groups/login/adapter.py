"""The account adapter for allauth, which runs the login stages; accounts, pages and audit events are ours."""

import ipaddress
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.signals import user_logged_in
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from flagadmin.core.errors import AuthenticationRequired
from flagadmin.core.http.client_address import get_client_address
from groups.login.actions import WRONG_CREDENTIALS, record_login
from groups.login.flow import is_own_path, make_safe_next
from groups.models import User

UNKNOWN_ADDRESS = "0.0.0.0"  # noqa: S104


class AccountAdapter(DefaultAccountAdapter):
    """Named in ``settings.ACCOUNT_ADAPTER``."""

    def get_login_stages(self) -> list[str]:
        return ["groups.second_factor.stage.SecondFactorStage"]

    def pre_login(
        self,
        request: HttpRequest,
        user: AbstractBaseUser,
        *,
        signal_kwargs: dict[str, Any] | None,
        **kwargs: Any,
    ) -> HttpResponse | None:
        """Called when the identity is proven. For one proven by the provider, allauth itself does not say how."""
        if signal_kwargs is not None:
            signal_kwargs.setdefault("how", "provider")
        return super().pre_login(request, user, signal_kwargs=signal_kwargs, **kwargs)

    def post_login(
        self,
        request: HttpRequest,
        user: AbstractBaseUser,
        *,
        signal_kwargs: dict[str, Any] | None,
        redirect_url: str | None,
        **kwargs: Any,
    ) -> HttpResponse:
        """Called when the session is there: records the login and redirects."""
        assert isinstance(user, User)
        response = HttpResponseRedirect(make_safe_next(redirect_url))
        details = signal_kwargs or {}
        user_logged_in.send(sender=User, request=request, response=response, user=user, **details)
        record_login(user, how=details["how"])
        return response

    def respond_user_inactive(self, request: HttpRequest, user: AbstractBaseUser) -> HttpResponse:
        raise AuthenticationRequired(WRONG_CREDENTIALS)

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_safe_url(self, url: str) -> bool:
        return is_own_path(url)

    def get_client_ip(self, request: HttpRequest) -> str:
        """Returns the client's address for the list of sessions, which stores valid addresses only."""
        try:
            return str(ipaddress.ip_address(get_client_address(request).partition("%")[0]))
        except ValueError:
            return UNKNOWN_ADDRESS

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Adds no message: our pages say what was done, in their own words."""

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Sends nothing: flagadmin sends its own mails, with `groups.login.mail`."""
