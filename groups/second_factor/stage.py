"""The stage of allauth's login that asks for a second factor, see `AccountAdapter.get_login_stages`."""

from typing import Any

from allauth.mfa.stages import AuthenticateStage
from django.utils.crypto import constant_time_compare

from groups.models import User


class SecondFactorStage(AuthenticateStage):
    """Ends when the account is disabled, or its password is changed, between the password and the code."""

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
