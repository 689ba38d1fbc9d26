"""The console's sessions: their users and start times, and how they end.

Django's session rows decide who is logged in. A `UserSession` adds the user and a description of the browser. A session
of an earlier version gets one with its next request.
"""

from datetime import UTC, datetime, timedelta

from allauth.account.adapter import get_adapter
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import update_session_auth_hash
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils import timezone

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
