"""`manage.py remove_second_factor NAME`: for an admin who has lost theirs and whom no other admin can help."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from flagadmin.core.errors import AppError
from groups.access import Caller
from groups.login.actions import describe_login
from groups.models import User
from groups.second_factor.actions import remove_all_factors


class Command(BaseCommand):
    help = "Remove the second factors of an account: its authenticator app, passkeys and recovery codes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", help="user name or email address")

    def handle(self, *, username: str, **options: Any) -> None:
        user = User.objects.named(username)
        if user is None:
            raise CommandError(f"No person is named {username}.")
        try:
            remove_all_factors(user.pk, caller=Caller.system())
        except AppError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"Removed. {_describe_login(user)}")


def _describe_login(user: User) -> str:
    if not user.is_active:
        return f"{user} is disabled."
    if way := describe_login(user):
        return f"{user} logs in {way} alone now."
    return f"{user} has no other way to log in. Make a one-time link: manage.py login_link {user}"
