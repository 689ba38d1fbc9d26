"""`flagadmin backup FILE`: writes the whole database to a file."""

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from flagadmin.core.db.backups.backup import backup, make_dated_path, remove_old_backups
from flagadmin.core.db.backups.programs import BackupError
from flagadmin.core.db.backups.restore import check_backup


class Command(BaseCommand):
    help = (
        "Write the bundled database to a file: `backup FILE`, or to a dated file: `backup FOLDER`. "
        "Servers keep running."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="a new file, or a folder for a dated file")
        parser.add_argument("--force", action="store_true", help="overwrite an existing file")
        parser.add_argument(
            "--keep",
            type=number_of_backups,
            metavar="N",
            help="remove all but the newest N backups of the folder",
        )
        parser.add_argument(
            "--check", action="store_true", help="prove that it can be restored, before old ones are removed"
        )

    def handle(
        self, *args: Any, path: Path, force: bool, keep: int | None, check: bool, **options: Any
    ) -> None:
        file = make_dated_path(path) if path.is_dir() else path
        if keep and not path.is_dir():
            raise CommandError(f"--keep needs a folder; {path} is none.")
        if file.exists() and not force:
            raise CommandError(f"{file} already exists. Choose another file, or add --force.")
        if not file.parent.is_dir():
            raise CommandError(f"Folder {file.parent} not found.")
        try:
            backup(file)
            self.stdout.write(f"Wrote {file} ({file.stat().st_size / 1e6:.1f} MB).")
            if check:
                self.stdout.write(check_backup(file))
            for removed in remove_old_backups(path, keep=keep) if keep else ():
                self.stdout.write(f"Removed {removed}.")
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"It contains password hashes: keep it safe. It does not contain {name_key()}, without which "
            "second factors cannot be read after a restore: keep that in another safe place."
        )


def number_of_backups(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text} is not a number of backups: it is 1 or more.")
    return int(text)


def name_key() -> str:
    path = settings.DATA_DIR / "secret_key"
    uses_file = path.exists() and path.read_text().strip() == settings.SECRET_KEY
    return f"the secret key ({path})" if uses_file else "SECRET_KEY"
