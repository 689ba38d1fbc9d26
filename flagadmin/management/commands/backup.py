"""`manage.py backup FILE`: writes the whole database to a file."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from flagadmin.db.backup import BackupError, backup


class Command(BaseCommand):
    help = "Write the whole database to a file: `backup FILE`. The server may keep running."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="overwrite an existing file")

    def handle(self, *args: Any, file: Path, force: bool, **options: Any) -> None:
        if file.exists() and not force:
            raise CommandError(f"{file} already exists. Choose another file, or add --force.")
        if not file.parent.is_dir():
            raise CommandError(f"Folder {file.parent} not found.")
        try:
            backup(file)
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"Wrote {file} ({file.stat().st_size / 1e6:.1f} MB). It contains password hashes: keep it safe."
        )
