"""The stage of allauth's login that asks for a second factor, see `AccountAdapter.get_login_stages`.

Import this late: it imports the code for passkeys, which takes a tenth of a second.
"""

from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.stages import AuthenticateStage
from django.http import HttpResponse
from django.utils.crypto import constant_time_compare

from groups.models import User
from groups.second_factor.queries import describe_factor


class SecondFactorStage(AuthenticateStage):
    """Ends if the account is disabled or its password changes between the password and the code."""

    def handle(self) -> tuple[Any, bool]:
        if isinstance(self.login.user, User):
            self.state["account"] = self.login.user.get_session_auth_hash()
        return super().handle()

    def is_over(self) -> bool:
        user = self.login.user
        return (
            not isinstance(user, User)
            or not user.is_active
            or not constant_time_compare(self.state.get("account", ""), user.get_session_auth_hash())
        )

    def pass_with(self, factor: Authenticator) -> HttpResponse:
        """Continues the login after this factor was used."""
        factor.record_usage()
        name = (
            "recovery code" if factor.type == Authenticator.Type.RECOVERY_CODES else describe_factor(factor)
        )
        signal = self.login.signal_kwargs or {}
        self.login.signal_kwargs = signal | {"how": f"{signal['how']}, {name}"}
        response: HttpResponse = self.exit()
        return response
