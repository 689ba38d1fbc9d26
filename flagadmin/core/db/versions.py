"""Finds out whether a database or a backup was made by a newer version of flagadmin."""

from collections.abc import Iterable

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


def find_newer_migrations(applied: Iterable[tuple[str, str]]) -> list[str]:
    """The applied migrations, ``(app, name)``, that this version does not have. Other applications' are left out."""
    known = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    apps = {app for app, _ in known}
    return sorted(f"{app}.{name}" for app, name in applied if app in apps and (app, name) not in known)


def read_newer_migrations() -> list[str]:
    return find_newer_migrations(MigrationRecorder(connection).applied_migrations())
