"""An authenticator app whose clock is the application's, so that no test waits for the next code."""

from types import SimpleNamespace
from typing import Any

from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from allauth.mfa.utils import decrypt
from django.utils import timezone

from groups.access import Caller
from groups.models import User
from groups.second_factor.actions import add_app

PERIOD = 30  # seconds
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


def code_of(secret: str = SECRET, *, later: int = 0) -> str:
    """The code of the present period, or of one so many periods later."""
    return format_hotp_value(hotp_value(secret, int(timezone.now().timestamp()) // PERIOD + later))


def just_logged_in(session: Any, user: User) -> None:
    """No page asks this session to confirm who it is. The session is still to be saved."""
    record_authentication(SimpleNamespace(session=session), user, "password")


def set_up_app(user: User) -> list[str]:
    """Gives the account an app with SECRET. Returns its recovery codes. No code has been used yet."""
    codes = add_app(user, SECRET, code_of(), caller=Caller(user=user))
    app = Authenticator.objects.get(user=user, type="totp")
    assert decrypt(app.data["secret"]) == SECRET
    app.data["period"] = 0
    app.save()
    return codes
