"""Migrates the database, even while other servers use or migrate it, unless a newer version has migrated it."""

import logging
from collections.abc import Iterable
from pkgutil import iter_modules

import psycopg
from django.apps import apps
from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder

from flagadmin.core.db.transactions import DEADLOCK, Lock, get_sqlstate, hold

log = logging.getLogger("flagadmin.runtime")

MAX_ATTEMPTS = 10


class NewerDatabaseError(Exception):
    """A newer version has migrated the database, and this one may not write it correctly."""


def migrate() -> None:
    """Applies all migrations, and adds the initial rows that are missing. Servers that start together migrate one after
    the other. Raises NewerDatabaseError.
    """
    with hold(Lock.MIGRATION):
        if newer := read_newer_migrations():
            raise NewerDatabaseError(
                f"A newer version of flagadmin has migrated the database ({', '.join(newer)}). Start that version, "
                "or restore a backup made before the upgrade."
            )
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                if has_unapplied_migrations():
                    call_command("migrate", interactive=False, verbosity=0)
                else:  # the command would first build the models of all migrations, which takes most of a second
                    emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)
                return
            except OperationalError as error:
                # A deadlock with a server of the previous version, which reads the tables. Completed migrations stay
                # applied.
                if get_sqlstate(error) != DEADLOCK or attempt == MAX_ATTEMPTS:
                    raise
                log.warning("Migrating again: %s", error)


def find_newer_migrations(applied: Iterable[tuple[str, str]]) -> list[str]:
    """The applied migrations of our apps, ``(app, name)``, that this version does not have."""
    known = list_migrations()
    ours = {app for app, _ in known}
    return sorted(f"{app}.{name}" for app, name in applied if app in ours and (app, name) not in known)


def list_migrations() -> set[tuple[str, str]]:
    """The migrations of this version, ``(app, name)``, by the names of their files: importing all takes longer."""
    return {
        (app.label, module.name)
        for app in apps.get_app_configs()
        for module in iter_modules([f"{app.path}/migrations"])
    }


def read_newer_migrations() -> list[str]:
    return find_newer_migrations(MigrationRecorder(connection).applied_migrations())


def has_unapplied_migrations() -> bool:
    return bool(list_migrations().difference(MigrationRecorder(connection).applied_migrations()))


def is_empty() -> bool:
    """Whether no version of flagadmin has ever migrated the database."""
    return not MigrationRecorder(connection).has_table()


def check_reachable() -> None:
    """Raises OperationalError with the reason, which the errors of a connection pool omit."""
    with connection.wrap_database_errors, psycopg.connect(**connection.get_connection_params()):
        pass
