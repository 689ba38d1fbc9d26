"""Maintenance mode: nothing is changed while it is on.

Every change records an audit event in its transaction, so recording one is refused. What records none goes on: SDKs,
their reports, reading. Logins are recorded too and go on, so that whoever ends the maintenance can log in
(`DURING_MAINTENANCE` in `flagadmin/core/audit/events.py`).
"""

from django.db import connection

from flagadmin.core.change_options import get_change_options
from flagadmin.core.errors import MaintenanceMode

# An arbitrary lock id. A change holds it shared until its end, so that after maintenance mode has been switched on, no
# change is still being written.
_LOCK = 5_172_033
WAIT = "10s"
_CHECK = "SELECT pg_advisory_xact_lock_shared(%s); SELECT is_in_maintenance FROM installation_installation"


def check_writable() -> None:
    """Raises MaintenanceMode. Otherwise it is not switched on before the end of this transaction."""
    if get_change_options().ignores_maintenance:
        return
    with connection.cursor() as cursor:
        # Two statements, sent at once: the second must see what was committed while the lock was awaited.
        cursor.execute(_CHECK, [_LOCK])
        cursor.nextset()
        row = cursor.fetchone()
    if row and row[0]:
        raise MaintenanceMode


def await_changes() -> None:
    """Waits for the changes that are being written. Further ones wait for this transaction's end."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [WAIT])
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
