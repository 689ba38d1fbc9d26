"""`manage.py restore FILE`: replaces the whole database with a backup."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from flagadmin.db.backup import BackupError, check_archive, holds_data, restore
from flagadmin.db.migrate import migrate


class Command(BaseCommand):
    help = "Replace everything in the database with a backup: `restore FILE`."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="even if the database is not empty")

    def handle(self, *args: Any, file: Path, force: bool, **options: Any) -> None:
        if not file.is_file():
            raise CommandError(f"File {file} not found.")
        try:
            check_archive(file)
            if holds_data() and not force:
                raise CommandError(
                    "The database is not empty, and restoring replaces all of it. "
                    "Make a backup, then add --force."
                )
            restore(file)
        except BackupError as error:
            raise CommandError(str(error)) from error
        # Migrates a backup of an older version and adds missing seed rows.
        migrate()
        self.stdout.write(f"Restored {file}.")
