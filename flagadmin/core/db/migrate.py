"""Migrates the database, while other servers may use or migrate it."""

import logging

from django.core.management import call_command
from django.db import OperationalError

from flagadmin.core.db.locks import Lock, hold
from flagadmin.core.db.transactions import DEADLOCK, get_sqlstate
from flagadmin.core.db.versions import read_newer_migrations

log = logging.getLogger("flagadmin.runtime")

MAX_ATTEMPTS = 10


class NewerDatabaseError(Exception):
    """A newer version has migrated the database: this one may not know what it must write."""


def migrate() -> None:
    """Applies all migrations. Servers that start together migrate one after the other. Raises NewerDatabaseError."""
    with hold(Lock.MIGRATION):
        if newer := read_newer_migrations():
            raise NewerDatabaseError(
                f"A newer version of flagadmin has migrated the database ({', '.join(newer)}). Start that version, "
                "or restore a backup made before the upgrade."
            )
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                call_command("migrate", interactive=False, verbosity=0)
                return
            except OperationalError as error:
                # With a server of the previous version, which reads the tables meanwhile. What was migrated stays.
                if get_sqlstate(error) != DEADLOCK or attempt == MAX_ATTEMPTS:
                    raise
                log.warning("Migrating again: %s", error)
