"""Goes on with a login that waits for a second factor."""

from typing import TYPE_CHECKING

from allauth.mfa.models import Authenticator
from django.http import HttpResponse

from groups.second_factor.queries import name_of

if TYPE_CHECKING:
    from groups.second_factor.stage import (
        SecondFactorStage,  # has to do with passkeys, which take time to import
    )


def pass_stage(stage: "SecondFactorStage", factor: Authenticator) -> HttpResponse:
    """Goes on with the login after this factor was used."""
    factor.record_usage()
    is_recovery = factor.type == Authenticator.Type.RECOVERY_CODES
    login = stage.login
    given = login.signal_kwargs or {}
    login.signal_kwargs = given | {
        "how": f"{given['how']}, {'recovery code' if is_recovery else name_of(factor)}"
    }
    response: HttpResponse = stage.exit()
    return response
