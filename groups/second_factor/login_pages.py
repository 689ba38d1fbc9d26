"""The second step of a login (/login/code/, a stage of allauth's), and logging in with a passkey alone
(/login/passkey/)."""

import time
from typing import TYPE_CHECKING, Any

from allauth.account.internal.decorators import login_stage_required
from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.internal.constants import LoginStageKey
from allauth.mfa.models import Authenticator
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.core import signing
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters

from flagadmin.core.errors import AppError, NoAccess, TooManyRequests, ValidationError
from flagadmin.core.http.middleware import get_client_address
from flagadmin.core.lists.pages import add_problems
from groups.login.flow import begin_login, keep_input, make_safe_next
from groups.login.passwords import log_failure
from groups.login.rules import PASSWORDS_OFF
from groups.models import User
from groups.second_factor.actions import check_code, read_second_factors, record_wrong_code, use_challenge
from groups.second_factor.passkeys import has_passkeys

if TYPE_CHECKING:
    from groups.second_factor.required import SecondFactorStage


class CodeForm(forms.Form):
    code = forms.CharField(
        max_length=100,
        widget=forms.TextInput(
            attrs={
                "autocomplete": "one-time-code",
                "autocapitalize": "none",
                "spellcheck": "false",
                "autofocus": True,
            }
        ),
    )


@method_decorator(
    [
        sensitive_post_parameters("code"),
        csrf_protect,
        never_cache,
        login_stage_required(stage=LoginStageKey.MFA_AUTHENTICATE.value, redirect_urlname="login"),
    ],
    name="dispatch",
)
class SecondFactorPage(View):
    """A page for users who have given the password but are not logged in yet."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if self.stage.is_over() or not read_second_factors(self.user):
            response: HttpResponse = self.stage.abort()
            return response
        return super().dispatch(request, *args, **kwargs)

    @property
    def stage(self) -> "SecondFactorStage":
        return self.request._login_stage  # type: ignore[attr-defined]

    @property
    def user(self) -> User:
        assert isinstance(self.stage.login.user, User)
        return self.stage.login.user

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.answer(CodeForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        form, address = CodeForm(request.POST), get_client_address(request)
        if answer := request.POST.get("credential"):
            return self.use_passkey(answer)
        if not form.is_valid():
            return self.answer(form, status=400)
        try:
            factor = check_code(self.user, form.cleaned_data["code"], address=address)
        except ValidationError as error:
            record_wrong_code(self.user, address=address)
            add_problems(form, error)
            return self.answer(form, status=401)
        except TooManyRequests as error:
            return self.wait(form, error)
        return self.enter(factor)

    def use_passkey(self, answer: str) -> HttpResponse:
        """Refusals are neither throttled nor audited: nobody can guess a signature."""
        from groups.second_factor.passkeys import verify_passkey

        try:
            factor = verify_passkey(self.user, answer)
        except ValidationError as error:
            log_failure(get_client_address(self.request), f"passkey of {self.user}")
            return self.answer(CodeForm(), status=401, refusal=error.message)
        return self.enter(factor)

    def enter(self, factor: Authenticator) -> HttpResponse:
        """Continues the login, which ends with a session and a redirect to ``next``."""
        if factor.type == Authenticator.Type.RECOVERY_CODES:
            left = read_second_factors(self.user).codes_left
            messages.warning(self.request, f"You have used a recovery code. You have {left} left.")
        return self.stage.pass_with(factor)

    def wait(self, form: forms.Form, error: AppError) -> HttpResponse:
        seconds = error.headers["Retry-After"]
        response = self.answer(form, status=429, wait=error.message, seconds=seconds)
        response["Retry-After"] = seconds
        return response

    def answer(self, form: forms.Form, *, status: int = 200, **more: Any) -> HttpResponse:
        factors = read_second_factors(self.user)
        if factors.passkeys and has_passkeys(self.request):
            from groups.second_factor.passkeys import begin_authentication

            more["options"] = begin_authentication(self.user)
        context = {
            "title": "Two-step verification",
            "form": form,
            "factors": factors,
            "messages": (),  # they are for the page after the login
            **more,
        }
        return render(self.request, "second_factor/login.html", context, status=status)


COOKIE = SALT = "passkey_login"
SECONDS = 300
ISSUED = "issued"
REFUSED = "The passkey was not accepted. Try again, or log in another way."


@method_decorator([csrf_protect, never_cache], name="dispatch")
class PasskeyLoginPage(View):
    """GET: the challenge as JSON, for passkeys.js. POST: the browser's answer."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.PASSWORD_LOGIN:  # everyone logs in through the identity provider
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
            log_failure(get_client_address(request), "passkey")  # an unknown user, so there is no event
            raise
        if not passkey.user.is_active or not use_challenge(passkey, issued):
            record_wrong_code(passkey.user, address=get_client_address(request))
            raise ValidationError(REFUSED)
        return passkey
