"""`manage.py login_link NAME`: prints a one-time link that logs a person in, even if password login is off."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from groups.login.links import LIFETIME, create_login_link
from groups.models import User


class Command(BaseCommand):
    help = "Print a one-time link that logs a user in, also if password login is off or the provider is down."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", help="user name or email address")

    def handle(self, *, username: str, **options: Any) -> None:
        user = User.objects.named(username)
        if user is None:
            raise CommandError(f"There is no user named {username}.")
        if not user.is_active:
            raise CommandError(f"{user} is disabled.")
        link = create_login_link(user, from_shell=True)
        self.stdout.write(f"{settings.PUBLIC_URL}{link}")
        minutes = int(LIFETIME.total_seconds() // 60)
        self.stderr.write(f"It logs in {user}, once, within {minutes} minutes.")
        if not settings.PUBLIC_URL:
            self.stderr.write(
                "Put the address of your installation before it: FLAGADMIN_PUBLIC_URL is not set."
            )
