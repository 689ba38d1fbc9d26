"""`manage.py standby watch`: lets the primary database continue alone when its synchronous standby is lost."""

from argparse import ArgumentParser
from contextlib import suppress
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from flagadmin.core.db.standby_watch import watch


class Command(BaseCommand):
    help = (
        "Let the primary database go on alone while its synchronous standby is lost, until it follows again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["watch"], help="runs until it is stopped")

    def handle(self, **options: Any) -> None:
        if not settings.STANDBY_URL:
            raise CommandError(
                "Set FLAGADMIN_STANDBY_URL: postgresql://replicator:PASSWORD@db1,db2/postgres?target_session_attrs=read-write"
            )
        try:
            with suppress(KeyboardInterrupt):
                watch(settings.STANDBY_URL, settings.STANDBY_ALONE_SECONDS, **settings.WHEN_HOSTS_DIE)
        except psycopg.errors.InsufficientPrivilege as error:
            raise CommandError(
                f"{error}\nThe role needs the rights that deploy/postgresql/roles.sql gives to replicator."
            ) from error
        except psycopg.ProgrammingError as error:
            raise CommandError(f"FLAGADMIN_STANDBY_URL is not valid: {error}") from error
