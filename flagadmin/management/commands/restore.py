"""`flagadmin restore FILE`: replaces the whole database with a backup."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from flagadmin.core.db.backups.programs import BackupError, check_installed
from flagadmin.core.db.backups.restore import check_archive, check_backup, renew_revisions, restore
from flagadmin.core.db.migrate import NewerDatabaseError, is_empty, migrate
from flagadmin.core.db.statements import fetch_row
from groups.second_factor.actions import find_people_with_unreadable_codes

NOT_EMPTY = (
    "The database is not empty, and restoring replaces all of it. Make a backup, then add --force. "
    "To prove that a backup can be restored, use --check."
)
UNLABELED = "made before 1.3, so it has no checksum, and not all damage is noticed"
COUNTS = {
    "flags": "SELECT count(*) FROM projects_flag",
    "projects": "SELECT count(*) FROM projects_project",
    "people": "SELECT count(*) FROM groups_user WHERE NOT is_service",
    "events": "SELECT count(*) FROM audit_auditevent",
}
"""What the database holds, including archived flags and projects."""
MAX_NAMED_PEOPLE = 10
OTHER_KEY = (
    "The second factors of {people} cannot be read: SECRET_KEY is not that of the installation that was backed up. "
    "Set SECRET_KEY to that one, or name it in SECRET_KEY_FALLBACKS too (of a bundled database, it is in the file "
    "secret_key of the data directory). If it is lost, run remove_second_factor for each of them."
)


class Command(BaseCommand):
    help = "Replace everything in the bundled database with a backup: `restore FILE`."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, nargs="?")
        parser.add_argument("--force", action="store_true", help="even if the database is not empty")
        parser.add_argument(
            "--check",
            action="store_true",
            help="prove that the backup can be restored, in a scratch database; changes nothing",
        )
        parser.add_argument(
            "--recovered",
            action="store_true",
            help="without a file, after a recovery of the database by PostgreSQL's own means",
        )

    def handle(
        self, *args: Any, file: Path | None, force: bool, check: bool, recovered: bool, **options: Any
    ) -> None:
        if (file is None) != recovered or (check and recovered):
            raise CommandError("Name a file, or use --recovered alone.")
        try:
            if file is None:
                check_installed()
                migrate()
                renew_revisions()
                self._report("Recovered")
            elif check:
                self.stdout.write(f"{file}: {check_file(file) or UNLABELED}.")
                self.stdout.write(check_backup(file))
            else:
                if not check_file(file):
                    self.stderr.write(f"{file}: {UNLABELED}.")
                if not (is_empty() or force):
                    raise CommandError(NOT_EMPTY)
                restore(file)
                # Migrates a backup of an older version and adds missing seed rows.
                migrate()
                self._report(f"Restored {file}")
        except (BackupError, NewerDatabaseError, OSError) as error:
            raise CommandError(str(error)) from error

    def _report(self, done: str) -> None:
        numbers = fetch_row("SELECT " + ", ".join(f"({count})" for count in COUNTS.values()))
        holds = ", ".join(f"{name} {number:,}" for name, number in zip(COUNTS, numbers, strict=True))
        self.stdout.write(f"{done}: {holds}.")
        if people := find_people_with_unreadable_codes():
            more = len(people) - MAX_NAMED_PEOPLE
            named = ", ".join(people[:MAX_NAMED_PEOPLE]) + (f" and {more} more" if more > 0 else "")
            self.stderr.write(OTHER_KEY.format(people=named))


def check_file(file: Path) -> str:
    """Describes the backup; "" without a label. Raises CommandError if it is missing, BackupError if it is none."""
    if not file.is_file():
        raise CommandError(f"File {file} not found.")
    label = check_archive(file)
    return (label and f"made by flagadmin {label['version']} at {label['at']}") or ""
