"""Keeps the list of sessions up to date: at each login, and then every few minutes while a session is in use."""

import logging
from collections.abc import Callable
from typing import Any

from allauth.account.signals import user_logged_in as allauth_logged_in
from allauth.usersessions.signals import on_user_logged_in as allauth_note
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.signals import user_logged_in
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponseBase

from flagadmin.core.db.standby import committed_locally
from groups.models import User
from groups.sessions.store import begin_session, is_due, note_session

log = logging.getLogger("flagadmin.sessions")


class SessionsMiddleware:
    """Handles requests that used their session; requests with a token never do."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        session = request.session
        if response.status_code >= 500 or not session.accessed or SESSION_KEY not in session:
            return response
        if is_due(request) and request.user.is_authenticated:
            try:
                with committed_locally():
                    _note(request, request.user)
            except DatabaseError as error:  # the answer exists, and matters more
                log.warning("A session's last use was not stored: %s", error)
        return response


def _note(request: HttpRequest, user: User) -> None:
    """Saves the session now, unless it is saved later: Django would wait for the commit, even for a page."""
    session = request.session
    is_saved_later = session.modified
    note_session(request, user)
    if not is_saved_later:
        session.save()
        session.modified = False


def connect() -> None:
    # allauth would read all sessions of the account one by one at each login, and does not handle unknown addresses.
    allauth_logged_in.disconnect(allauth_note)
    user_logged_in.connect(_begin_session)


def _begin_session(sender: Any, *, request: HttpRequest, user: User, **kwargs: Any) -> None:
    begin_session(request, user)
