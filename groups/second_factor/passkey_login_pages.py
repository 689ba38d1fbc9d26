"""/login/passkey/: logs in with a passkey alone. The device asks for a PIN, finger or face: two factors in one."""

import time
from typing import Any

from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.core import signing
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect

from flagadmin.core.errors import NoAccess, ValidationError
from flagadmin.core.http.client_address import get_client_address
from groups.login.flow import begin_login, make_safe_next
from groups.login.kept_input import keep_input
from groups.login.rules import PASSWORDS_OFF
from groups.login.throttle import log_failure
from groups.models import User
from groups.second_factor.actions import record_wrong_code, use_challenge

COOKIE = SALT = "passkey_login"
SECONDS = 300
ISSUED = "issued"
REFUSED = "The passkey was not accepted. Try again, or log in another way."


@method_decorator([csrf_protect, never_cache], name="dispatch")
class PasskeyLoginPage(View):
    """GET: the challenge as JSON, for passkeys.js. POST: what the browser answered."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.PASSWORD_LOGIN:  # everybody logs in through the identity provider
            raise NoAccess(PASSWORDS_OFF)
        return super().dispatch(request, *args, **kwargs)

    def get(self, request: HttpRequest) -> HttpResponseBase:
        from groups.second_factor.passkeys import begin_authentication, take_state

        response = JsonResponse(begin_authentication(None))
        response.set_cookie(
            COOKIE,
            signing.dumps(take_state() | {ISSUED: time.time()}, salt=SALT),
            max_age=SECONDS,
            path=request.path,
            secure=settings.HTTPS,
            httponly=True,
            samesite="Strict",
        )
        return response

    def post(self, request: HttpRequest) -> HttpResponseBase:
        next_url = make_safe_next(request.POST.get("next"))
        try:
            passkey = self.used_passkey(request)
        except (ValidationError, signing.BadSignature):
            messages.error(request, REFUSED)
            return redirect_to_login(next_url)
        user = User.objects.get(pk=passkey.user_id)
        record_authentication(request, user, "mfa", id=passkey.pk, type=passkey.type, passwordless=True)
        response = begin_login(request, user, next_url, how="passkey")
        if entered := request.POST.get("entered"):
            keep_input(request, next_url, entered)
        response.delete_cookie(COOKIE, path=request.path, samesite="Strict")
        return response

    def used_passkey(self, request: HttpRequest) -> Authenticator:
        """Raises ValidationError, BadSignature."""
        from groups.second_factor.passkeys import put_state, verify_passkey_of_anyone

        try:
            state = signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=SECONDS)
            issued = state.pop(ISSUED)
            put_state(state)
            passkey = verify_passkey_of_anyone(request.POST.get("credential", ""))
        except (ValidationError, signing.BadSignature):
            log_failure(get_client_address(request), "passkey")  # of nobody known, so there is no event
            raise
        if not passkey.user.is_active or not use_challenge(passkey, issued):
            record_wrong_code(passkey.user, address=get_client_address(request))
            raise ValidationError(REFUSED)
        return passkey
