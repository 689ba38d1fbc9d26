"""`manage.py demo`: loads demo data, prints how to log in, and serves it."""

import os
from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.db.migrate import NewerDatabaseError, migrate
from flagadmin.demo.flags import VISITOR
from flagadmin.demo.load import create_key, load_demo, set_first_password
from flagadmin.management.commands.serve import check_free, make_local_url
from groups.login.links import create_login_link
from playground.user_runs import worker
from projects.models import Flag, Project

BODY = '{"environments": ["production"], "projects": ["storefront"], "context": {"userId": "42"}}'


class Command(BaseCommand):
    help = "Load demo data (once), print how to log in, and serve it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument(
            "--port",
            type=int,
            default=int(os.environ.get("PORT", "8000")),
            help="port to listen on (PORT, or 8000)",
        )
        parser.add_argument("--workers", type=int, default=2)
        parser.add_argument("--no-serve", action="store_true", help="load and print only")

    def handle(self, *, host: str, port: int, workers: int, no_serve: bool, **options: Any) -> None:
        if not no_serve:
            check_free(host, port)  # before loading data for a server that cannot start
        try:
            migrate()
        except NewerDatabaseError as error:
            raise CommandError(str(error)) from error
        self.stdout.write("Loading demo data ...")
        self.stdout.flush()
        admin = load_demo()
        worker.work()
        address = settings.PUBLIC_URL or make_local_url(host, port)
        visit = f"{reverse('playground')}?" + urlencode(
            {"environment": "production", **{f"context.{name}": value for name, value in VISITOR.items()}}
        )
        password = set_first_password(admin)  # first, because it invalidates the account's links and tokens
        greeting = GREETING.format(
            address=address,
            projects=Project.objects.count(),
            active=Flag.objects.active().count(),
            archived=Flag.objects.archived().count(),
            link=address + create_login_link(admin, visit),
            password=PASSWORD.format(name=admin.username, password=password, address=address)
            if password
            else "",
            key=create_key(admin, timezone.now()),
            body=BODY,
        )
        if no_serve:
            self.stdout.write(greeting)
        else:
            call_command("serve", host=host, port=port, workers=workers, greeting=greeting)


PASSWORD = """\
  Or with    {name} / {password}   at {address}/login/
             (the password is shown this once)
"""

GREETING = """
flagadmin, with demo data: {projects} projects, {active} active flags and {archived} archived ones
in development and production, groups, roles, a service account, and applications that use the flags.

  Log in     {link}
             (works once, for 15 minutes; opens the playground for user 42 in production)
{password}  API        {address}/api/docs/
  API token  {key}
             (earlier ones stay valid, each for 30 days)

  curl -s -H 'Authorization: {key}' -H 'Content-Type: application/json' \\
    -d '{body}' \\
    {address}/api/admin/playground/advanced
"""
