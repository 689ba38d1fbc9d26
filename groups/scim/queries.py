"""Reads the settings of SCIM."""

from groups.access import Caller, Permission
from groups.models import ScimSettings
from groups.models.scim import ROW


def load_settings() -> ScimSettings:
    """The stored settings, or the defaults of an installation that has never used SCIM."""
    return ScimSettings.objects.filter(pk=ROW).first() or ScimSettings()


def read_settings(caller: Caller) -> ScimSettings:
    """Raises NoAccess."""
    caller.check(Permission.ADMIN)
    return load_settings()
