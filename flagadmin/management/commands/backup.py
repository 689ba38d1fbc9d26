from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from flagadmin.db.backup import BackupError, backup


class Command(BaseCommand):
    help = "Write the whole database to a file: `backup FILE`. It may be served meanwhile."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="write over a file that is there")

    def handle(self, *args: Any, file: Path, force: bool, **options: Any) -> None:
        if file.exists() and not force:
            raise CommandError(f"{file} is there already. Name another file, or add --force.")
        if not file.parent.is_dir():
            raise CommandError(f"There is no folder {file.parent}.")
        try:
            backup(file)
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"Wrote {file} ({file.stat().st_size / 1e6:.1f} MB). It has password hashes in it: keep it safe."
        )
