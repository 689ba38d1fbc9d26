"""Ends sessions: one, or all of an account."""

from allauth.usersessions.models import UserSession

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from groups.access import Caller, Permission
from groups.models import User
from groups.sessions.store import delete_session


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
