"""The console's sessions: their users and start times, and how they end.

Django's session rows decide who is logged in. A `UserSession` adds the user and a description of the browser. A session
of an earlier version gets one with its next request.

Keeps the list of sessions up to date: at each login, and then every few minutes while a session is in use.

Ends sessions: one, or all of an account.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.signals import user_logged_in as allauth_logged_in
from allauth.usersessions.models import UserSession
from allauth.usersessions.signals import on_user_logged_in as allauth_note
from django.conf import settings
from django.contrib.auth import SESSION_KEY, update_session_auth_hash
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.models import Session
from django.db import DatabaseError, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.standby import committed_locally
from flagadmin.core.db.transactions import transactional
from groups.access import Caller, Permission
from groups.models import User

NOTE_EVERY = timedelta(minutes=5)
SINCE, NOTED = "session_since", "session_noted"  # in the session's data; seconds since 1970
PROVIDER_SESSION = (
    "provider_session"  # the identity provider's id of the session (`sid` in the ID token), if any
)
ID_TOKEN = "id_token"  # of the login at the identity provider, if logging out also ends the session there
_MAX_AGENT_LENGTH = UserSession._meta.get_field("user_agent").max_length


def read_sessions(user: User) -> QuerySet[UserSession]:
    """The account's open sessions, the last used first."""
    return UserSession.objects.filter(_is_open(), user=user).order_by("-last_seen_at", "-id")


def begin_session(request: HttpRequest, user: User) -> None:
    """Stores the session's details after a login. It always ends after SESSION_COOKIE_AGE."""
    request.session.set_expiry(timezone.now() + timedelta(seconds=settings.SESSION_COOKIE_AGE))
    if not request.session.session_key:
        request.session.save()
    request.session[SINCE] = timezone.now().timestamp()
    note_session(request, user)


def is_due(request: HttpRequest) -> bool:
    """Whether the stored time of the session's last use is too old."""
    noted = request.session.get(NOTED)
    return noted is None or timezone.now().timestamp() - noted > NOTE_EVERY.total_seconds()


def note_session(request: HttpRequest, user: User) -> None:
    """Stores the time and address of the session's use."""
    now = timezone.now()
    details = {
        "user": user,
        "ip": get_adapter(request).get_client_ip(request),
        "user_agent": request.META.get("HTTP_USER_AGENT", "")[:_MAX_AGENT_LENGTH],
        "last_seen_at": now,
        "data": {key: value for key in [PROVIDER_SESSION] if (value := request.session.get(key))},
    }
    since = datetime.fromtimestamp(request.session.setdefault(SINCE, now.timestamp()), UTC)
    UserSession.objects.update_or_create(
        session_key=request.session.session_key,
        defaults=details,
        create_defaults=details | {"created_at": since},
    )
    request.session[NOTED] = now.timestamp()


def keep_this_session(request: HttpRequest, user: User) -> None:
    """Logs the caller's own browser in again, after all sessions of the account have been ended."""
    update_session_auth_hash(request, user)
    note_session(request, user)


@transaction.atomic
def delete_session(session: UserSession) -> None:
    Session.objects.filter(session_key=session.session_key).delete()
    session.delete()


@transaction.atomic
def delete_sessions(user: User) -> None:
    """Deletes all stored data of the account's sessions."""
    sessions = UserSession.objects.filter(user=user)
    Session.objects.filter(session_key__in=sessions.values("session_key")).delete()
    sessions.delete()


def forget_ended_sessions() -> None:
    """Deletes the rows of expired and logged-out sessions."""
    Session.objects.filter(expire_date__lt=timezone.now()).delete()
    UserSession.objects.filter(~_is_open()).delete()


def _is_open() -> Exists:
    return Exists(Session.objects.filter(session_key=OuterRef("session_key"), expire_date__gt=timezone.now()))


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


@transactional
def end_session(user: User, session_id: int, *, caller: Caller) -> UserSession:
    """Ends one session of the account, for all workers at once. Returns the ended session.

    Raises NoAccess, NotFound.
    """
    if caller.id != user.pk:
        caller.check(Permission.ADMIN)
    session = get_or_404(UserSession.objects, "This session has ended already.", user=user, pk=session_id)
    delete_session(session)
    before = {"address": session.ip, "userAgent": session.user_agent}
    record(Event(type=EventType.USER_SESSION_ENDED, subject=user.username, before=before), actor=caller)
    return session
