"""Creates and deletes the URL of a person's calendar."""

import secrets

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation, NotFound
from groups.access import Caller
from groups.models import User
from groups.tokens import hash_secret
from integrations.models import CalendarFeed


@transactional
def create_feed(*, caller: Caller) -> str:
    """Returns the token, which cannot be read later. The previous one stops working at once. Raises
    InvalidOperation.
    """
    user, token = _find_user(caller), secrets.token_urlsafe(32)
    CalendarFeed.objects.update_or_create(user=user, defaults={"token_hash": hash_secret(token)})
    record(Event(type=EventType.CALENDAR_FEED_CREATED, subject=user.username), actor=caller)
    return token


@transactional
def delete_feed(*, caller: Caller) -> None:
    """Raises NotFound, InvalidOperation."""
    user = _find_user(caller)
    if not CalendarFeed.objects.filter(user=user).delete()[0]:
        raise NotFound("There is no calendar.")
    record(Event(type=EventType.CALENDAR_FEED_DELETED, subject=user.username), actor=caller)


def _find_user(caller: Caller) -> User:
    if caller.user is None:
        raise InvalidOperation("A calendar belongs to a person.")
    return caller.user
