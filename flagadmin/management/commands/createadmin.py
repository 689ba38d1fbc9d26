"""`manage.py createadmin NAME`: creates an account with the root role Admin."""

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from flagadmin.core.db.migrate import NewerDatabaseError, migrate
from flagadmin.core.errors import ValidationError
from groups.access import Caller
from groups.login.links import create_first_admin


class Command(BaseCommand):
    help = "Create an account with the root role Admin. The password is prompted for or read from standard input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--email")
        parser.add_argument(
            "--password-stdin", action="store_true", help="read the password from standard input"
        )

    def handle(self, *, username: str, email: str | None, password_stdin: bool, **options: Any) -> None:
        password = sys.stdin.readline().rstrip("\r\n") if password_stdin else prompt_for_password()
        try:
            migrate()  # the database may be new
            user = create_first_admin(
                username=username, password=password, email=email, caller=Caller.system()
            )
        except NewerDatabaseError as error:
            raise CommandError(str(error)) from error
        except ValidationError as error:
            raise CommandError("\n".join(p.message for p in error.details) or error.message) from error
        self.stdout.write(f"{user} is an admin now. Log in at /login/.")


def prompt_for_password() -> str:
    """Prompts twice for a password. Raises CommandError without a terminal."""
    if not sys.stdin.isatty():
        raise CommandError("No terminal to prompt for the password. Use --password-stdin.")
    password = getpass.getpass("Password: ")
    if getpass.getpass("Password again: ") != password:
        raise CommandError("The passwords do not match. No account was created.")
    return password
