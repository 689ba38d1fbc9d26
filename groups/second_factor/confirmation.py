"""Asks people to confirm their identity before they change their login, because their session may be stolen."""

import time
from datetime import timedelta

from allauth.account.internal.flows.login import get_authentication_records, record_authentication
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

from groups.console import ConsolePage
from groups.models import User
from groups.second_factor.queries import has_second_factor

CONFIRMATION_LIFETIME = timedelta(minutes=10)


def is_confirmed(request: HttpRequest, user: User) -> bool:
    """Whether the user has logged in or confirmed their identity in the last minutes.

    Also true for an account without a password and second factor, which cannot confirm anything.
    """
    since = time.time() - CONFIRMATION_LIFETIME.total_seconds()
    if any(login["at"] > since for login in get_authentication_records(request, user)):
        return True
    return not (user.has_usable_password() or has_second_factor(user))


def confirm(request: HttpRequest, user: User, *, how: str) -> None:
    record_authentication(request, user, method=how, reauthenticated=True)


class NeedsConfirmation(ConsolePage):
    """A mixin for pages and forms that work only shortly after a confirmation."""

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if request.user.is_authenticated and not is_confirmed(request, request.user):
            return redirect_to_login(request.path, reverse("account-confirm"))
        return super().dispatch(request, *args, **kwargs)
