"""Keeps the list of sessions up to date, at the cost of two statements every few minutes of a session's use."""

import logging
from collections.abc import Callable

from django.contrib.auth import SESSION_KEY
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponseBase

from flagadmin.core.db.standby import committed_locally
from groups.models import User
from groups.sessions.store import is_due, note_session

log = logging.getLogger("flagadmin.sessions")


class SessionsMiddleware:
    """Looks at requests that used their session; those with a token never do."""

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
            except DatabaseError as error:  # the answer is there, and worth more
                log.warning("A session's last use was not stored: %s", error)
        return response


def _note(request: HttpRequest, user: User) -> None:
    """Saves the session at once if it is not saved later: Django would wait for the commit, also of a page."""
    session = request.session
    is_saved_later = session.modified
    note_session(request, user)
    if not is_saved_later:
        session.save()
        session.modified = False
