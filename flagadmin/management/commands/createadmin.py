"""`manage.py createadmin NAME`: an account with the root role Admin, for whoever has a shell on the server."""

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from flagadmin.errors import ValidationError
from groups.access import Caller
from groups.login.links import create_first_admin


class Command(BaseCommand):
    help = "Make an account with the root role Admin. Asks for the password, which is never an argument."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--email")
        parser.add_argument(
            "--password-stdin", action="store_true", help="read the password from standard input"
        )

    def handle(self, *, username: str, email: str | None, password_stdin: bool, **options: Any) -> None:
        password = sys.stdin.readline().rstrip("\r\n") if password_stdin else asked_for_password()
        try:
            user = create_first_admin(
                username=username, password=password, email=email, caller=Caller.system()
            )
        except ValidationError as error:
            raise CommandError("\n".join(p.message for p in error.details) or error.message) from error
        self.stdout.write(f"{user} may do everything now. Log in at /login/.")


def asked_for_password() -> str:
    """Typed twice. Raises CommandError where nobody can type."""
    if not sys.stdin.isatty():
        raise CommandError("There is no terminal to ask for the password: use --password-stdin.")
    password = getpass.getpass("Password: ")
    if getpass.getpass("Once more: ") != password:
        raise CommandError("These are two different passwords. No account was made.")
    return password
