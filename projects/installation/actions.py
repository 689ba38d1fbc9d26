"""Changes the installation's settings.

Rules for the installation's settings.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import OperationalError

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import LOCK_NOT_AVAILABLE, get_sqlstate, transactional
from flagadmin.core.errors import Conflict, Problem, check_problems
from flagadmin.core.installation import state
from flagadmin.core.installation.models import ROW, Installation
from flagadmin.core.installation.state import await_changes, check_writable
from groups.access import Caller, Permission

ORIGINS = "the frontend API's origins"
"""The subject of their events."""
MAY_SET_MAINTENANCE = (Permission.ADMIN, Permission.UPDATE_MAINTENANCE_MODE)
MAY_SET_ORIGINS = (Permission.ADMIN, Permission.UPDATE_CORS)


def set_maintenance(is_on: bool, *, caller: Caller) -> None:
    """Switches maintenance mode. After it is on, no change is still being written.

    Raises NoAccess, Conflict (a long change, such as an import, does not end).
    """
    caller.check_any(MAY_SET_MAINTENANCE)
    try:
        _store({"is_in_maintenance": is_on}, "maintenance mode", caller)
    except OperationalError as error:
        if get_sqlstate(error) != LOCK_NOT_AVAILABLE:
            raise
        raise Conflict(
            "A long change, such as an import, is still being written. Try again when it has ended."
        ) from error


def set_frontend_origins(origins: Sequence[str], *, caller: Caller) -> None:
    """Sets the origins that may call the frontend API and OFREP, replacing FLAGADMIN_FRONTEND_ORIGINS.

    They take effect within two seconds in all processes. Raises NoAccess, ValidationError, MaintenanceMode.
    """
    caller.check_any(MAY_SET_ORIGINS)
    listed = [origin.strip().rstrip("/").lower() for origin in origins]
    check_problems(problems_of_origins(listed))
    _store({"frontend_origins": list(dict.fromkeys(listed))}, ORIGINS, caller)


def _store(values: dict[str, Any], subject: str, caller: Caller) -> None:
    _write(values, subject, caller)
    state.forget()


@transactional
def _write(values: dict[str, Any], subject: str, caller: Caller) -> None:
    if "is_in_maintenance" in values:
        await_changes()
    else:
        check_writable()
    installation, _ = Installation.objects.select_for_update().get_or_create(pk=ROW)
    before = {name: getattr(installation, name) for name in values}
    if before == values:
        return
    Installation.objects.filter(pk=ROW).update(**values)
    record(Event(type=EventType.SETTING_UPDATED, subject=subject, before=before, after=values), actor=caller)


MAX_ORIGINS = 100
ALL = "*"
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@,]{1,253}", re.IGNORECASE)


def problems_of_origins(origins: Sequence[str]) -> Iterator[Problem]:
    """Each is ``*`` or a browser's ``Origin`` header: scheme, host and, unless it is the default, port."""
    if len(origins) > MAX_ORIGINS:
        yield Problem("frontendApiOrigins", f"At most {MAX_ORIGINS} origins.")
    for index, origin in enumerate(origins):
        if origin != ALL and not _ORIGIN.fullmatch(origin):
            yield Problem(
                f"frontendApiOrigins[{index}]",
                f"{origin[:200]} is not an origin. Enter * or, for example, https://app.example.org.",
            )
