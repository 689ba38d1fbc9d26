"""A command of `flagadmin.client` as one of Django's, for help alone: `flagadmin.__main__` runs it."""

from django.core.management.base import BaseCommand, CommandParser

from flagadmin.client.main import COMMANDS, add_options


class OfClient(BaseCommand):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.client = COMMANDS[name]
        self.help = self.client.help

    def add_arguments(self, parser: CommandParser) -> None:
        add_options(parser, self.client)
