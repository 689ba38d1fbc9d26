"""Switches SCIM on and off, and makes its token."""

import secrets

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.transactions import transactional
from groups.access import Caller
from groups.models import ScimSettings
from groups.models.scim import ROW
from groups.permissions import Permission
from groups.tokens import hash_secret

SUBJECT = "SCIM"
START = "scim:"


@transactional
def set_enabled(is_enabled: bool, *, caller: Caller) -> ScimSettings:
    """Raises NoAccess."""
    scim = _lock(caller)
    if scim.is_enabled != is_enabled:
        _record(caller, {"enabled": scim.is_enabled}, {"enabled": is_enabled})
        scim.is_enabled = is_enabled
        scim.save(update_fields=["is_enabled"])
    return scim


@transactional
def make_token(*, caller: Caller) -> str:
    """A new token, instead of the one before, which no longer works. It is not stored. Raises NoAccess."""
    scim = _lock(caller)
    secret = START + secrets.token_urlsafe(32)
    _record(caller, {"hasToken": scim.has_token}, {"hasToken": True, "new": True})
    scim.token_hash, scim.token_created_at, scim.seen_at = hash_secret(secret), timezone.now(), None
    scim.save()
    return secret


def _lock(caller: Caller) -> ScimSettings:
    caller.check(Permission.ADMIN)
    ScimSettings.objects.bulk_create([ScimSettings(pk=ROW)], ignore_conflicts=True)
    return ScimSettings.objects.select_for_update().get(pk=ROW)


def _record(caller: Caller, before: dict[str, bool], after: dict[str, bool]) -> None:
    record(Event(type=EventType.SETTING_UPDATED, subject=SUBJECT, before=before, after=after), actor=caller)
