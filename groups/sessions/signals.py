"""Records a session at each login, whichever page or command started it."""

from typing import Any

from allauth.account.signals import user_logged_in as allauth_logged_in
from allauth.usersessions.signals import on_user_logged_in as allauth_note
from django.contrib.auth.signals import user_logged_in
from django.http import HttpRequest

from groups.models import User
from groups.sessions.store import begin_session


def connect() -> None:
    # allauth would read all sessions of the account one by one at each login, and knows no unknown address.
    allauth_logged_in.disconnect(allauth_note)
    user_logged_in.connect(_begin_session)


def _begin_session(sender: Any, *, request: HttpRequest, user: User, **kwargs: Any) -> None:
    begin_session(request, user)
