"""`manage.py token create`: creates an API token and prints its secret."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from flagadmin.core.errors import AppError
from groups.access import Caller
from groups.models import ApiToken, User
from groups.people.personal_tokens import create_personal_token
from projects.tokens.actions import NewToken, create_token

EVERY = "*"


class Command(BaseCommand):
    help = (
        "Create an API token: "
        "`token create --kind backend --name checkout --projects default,shop --environment production`."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        create = parser.add_subparsers(dest="verb", required=True).add_parser(
            "create", help="create a token and print its secret, once"
        )
        create.add_argument(
            "--kind", required=True, choices=["admin", "backend", "client", "frontend", "personal"]
        )
        create.add_argument("--name", required=True, help="its name in lists")
        create.add_argument("--projects", help="ids separated by commas, or * for all projects")
        create.add_argument("--environment", help="one environment (backend and frontend)")
        create.add_argument("--user", help="user name or email of a person or service account (personal)")
        create.add_argument("--days", type=int, help="number of days until it expires")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            secret = self._create(options)
        except AppError as error:
            raise CommandError(self._words(error)) from error
        self.stdout.write(secret)

    def _create(self, options: dict[str, Any]) -> str:
        caller = Caller.system()
        expires_at = timezone.now() + timedelta(days=options["days"]) if options["days"] else None
        if options["kind"] == "personal":
            user = self._user(options["user"])
            return create_personal_token(user, name=options["name"], expires_at=expires_at, caller=caller)[1]
        kind = ApiToken.Kind.BACKEND if options["kind"] == "client" else options["kind"]
        new = NewToken(
            name=options["name"],
            kind=kind,
            projects=self._projects(options["projects"], kind),
            environment=None if options["environment"] == EVERY else options["environment"],
            expires_at=expires_at,
        )
        return create_token(new, caller=caller)[1]

    def _projects(self, ids: str | None, kind: str) -> tuple[str, ...] | None:
        if ids is None and kind != ApiToken.Kind.ADMIN:
            raise CommandError("--projects is required: ids separated by commas, or '*' for all projects.")
        if ids is None or ids.strip() == EVERY:
            return None
        return tuple(dict.fromkeys(part.strip() for part in ids.split(",") if part.strip()))

    def _user(self, name: str | None) -> User:
        if not name:
            raise CommandError("--user is required: the owner of the personal token.")
        user = (
            User.objects.filter(username__iexact=name).first()
            or User.objects.filter(email__iexact=name).first()
        )
        if user is None:
            raise CommandError(f"Account {name} not found.")
        return user

    def _words(self, error: AppError) -> str:
        return "; ".join(map(str, error.details)) or error.message
