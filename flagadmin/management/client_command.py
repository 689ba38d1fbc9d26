"""Lists the commands of `flagadmin.client` with Django's, for help and reference. `flagadmin.command` runs them."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from flagadmin.client.main import Command as ClientCommand
from flagadmin.client.main import add_options, run_command


class OfClient(BaseCommand):
    client: ClientCommand

    def add_arguments(self, parser: CommandParser) -> None:
        add_options(parser, self.client)

    def handle(self, *args: Any, **options: Any) -> None:
        if status := run_command(self.client, options):
            raise SystemExit(status)
