"""The command line: `flagadmin` for an installed package, `manage.py` in a checkout.

It is Django's command line, with three differences. Help lists the commands for operators with a sentence each.
Commands that would bypass the audit log or destroy data are refused. An error of the configuration or the database is
shown as a sentence instead of a traceback (`--traceback` shows that too).
"""

import gc
import os
import sys
from collections.abc import Iterator

from django.core.exceptions import ImproperlyConfigured
from django.core.management import ManagementUtility
from django.core.management.base import BaseCommand
from django.db.utils import OperationalError, ProgrammingError

from flagadmin import __version__, client
from flagadmin.core.db.bundled import server
from flagadmin.core.db.migrate import check_reachable
from flagadmin.core.db.transactions import is_schema_incomplete
from flagadmin.core.server.memory import on_one_stack

GROUPS = {
    "Serving": ("serve", "demo"),
    "Accounts and tokens": ("createadmin", "login_link", "remove_second_factor", "token"),
    "Flags": ("import_flags", "convert", "diff", "move", "check_expectations", "assignments"),
    "Flags of a server, from another machine": client.NAMES,
    "Data": ("backup", "restore", "cleanup_usage", "backfill_versions"),
}
OURS = frozenset(name for names in GROUPS.values() for name in names)
# Django's commands that help an operator diagnose a fault. Developers' commands work too, but are not listed.
SUPPORT = ("check", "dbshell", "migrate", "shell", "showmigrations")

# These commands may create the bundled database. The others would only find an empty one and report on it.
CREATING = ("serve", "demo", "createadmin", "restore")

REFUSED = {
    "flush": "It would delete all data. To begin anew, use an empty FLAGADMIN_DATA_DIR or database.",
    "testserver": "Use demo, which serves demo data.",
    "runserver": "Use serve.",
    "createsuperuser": "Use createadmin, which records the account in the audit log.",
    "changepassword": "Use login_link: its link lets the person set a new password.",
    "loaddata": "It would write past all rules and the audit log. Use import_flags or restore.",
    "pgtrigger": "It could remove the triggers that notice changes. `migrate` installs them.",
}


class CommandLine(ManagementUtility):
    """Django's command line for flagadmin."""

    def __init__(self, argv: list[str]) -> None:
        super().__init__(argv)
        # Django takes any __main__.py for its own.
        self.prog_name = self.prog_name.replace("python -m django", "python -m flagadmin")

    def execute(self) -> None:
        if self.argv[1:] in (["--version"], ["version"]):
            sys.stdout.write(f"flagadmin {__version__}\n")
        else:
            super().execute()

    def main_help_text(self, commands_only: bool = False) -> str:
        if commands_only:
            return "\n".join(name for names in (*GROUPS.values(), SUPPORT) for name in names)
        return "\n".join(self._list_help_lines())

    def _list_help_lines(self) -> Iterator[str]:
        yield f"flagadmin {__version__}: feature flag administration.\n"
        yield f"Type '{self.prog_name} help COMMAND' for the options of a command."
        yield "\nRelay:"
        yield f"  {'relay':22}Serves SDKs from a copy of a server's answers, without a database."
        for group, names in {**GROUPS, "Support (Django's commands)": SUPPORT}.items():
            yield f"\n{group}:"
            for name in names:
                yield f"  {name:22}{read_first_sentence(self.fetch_command(name))}"

    def fetch_command(self, subcommand: str) -> BaseCommand:
        # Everything is loaded by now and stays, so the collector need not look at it.
        gc.freeze()
        gc.enable()
        if subcommand in REFUSED:
            sys.exit(f"flagadmin has no command {subcommand}. {REFUSED[subcommand]}")
        if subcommand in client.NAMES:
            from flagadmin.management.client_command import OfClient

            return OfClient(subcommand)
        command = super().fetch_command(subcommand)
        if subcommand in OURS:
            # For the checks, Django would load all models, URLs and pages, which takes 0.7 s. CI has already run them.
            command.requires_system_checks = ()
        return command


def read_first_sentence(command: BaseCommand) -> str:
    text = " ".join(str(command.help).split())
    return text.split(". ")[0].rstrip(".") + "."


@on_one_stack
def main() -> None:
    gc.disable()  # until `fetch_command`: collection takes a quarter of the loading time
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "flagadmin.settings")
    run(sys.argv)


def run(argv: list[str]) -> None:
    """Runs a command. Exits with status 1 and a message for a problem with the configuration or database."""
    server.may_create = not OURS.union(SUPPORT).difference(CREATING).intersection(argv[1:2])
    try:
        CommandLine(argv).execute()
    except (ImproperlyConfigured, OperationalError, ProgrammingError) as error:
        message = describe(error)
        if message is None or "--traceback" in argv:
            raise
        sys.exit(message.strip())


def describe(error: Exception) -> str | None:
    """Describes the problem with the configuration or the database. None if the error is a bug."""
    if isinstance(error, ImproperlyConfigured):
        return str(error)
    if isinstance(error, OperationalError):
        return f"The database is not available: {_find_reason(error)}"
    if is_schema_incomplete(error):
        return "The database has not been set up by this version of flagadmin. Start `serve` first."
    return None


def _find_reason(error: OperationalError) -> str:
    try:
        check_reachable()
    except OperationalError as reason:
        return str(reason)
    return str(error)
