"""The command line of the commands that work with a server from another machine."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from flagadmin.client import as_code, references
from flagadmin.client.report import drop_controls
from flagadmin.client.server import ClientError

FAILED = 1
SERVER_OPTIONS = "The server is FLAGADMIN_URL, and the token FLAGADMIN_TOKEN, which other users cannot see."


class Command(NamedTuple):
    help: str
    add_options: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


COMMANDS = {
    "pull": Command(
        "Write the flags, segments and context fields of a server's projects into a directory.",
        as_code.add_pull,
        as_code.pull,
    ),
    "plan": Command(
        "Say what applying a directory would change, and who would get something else. "
        "Exit status: 0 if nothing, 2 if something, 1 for an error.",
        as_code.add_plan,
        as_code.plan,
    ),
    "apply": Command(
        "Apply a directory to a server: all of it, or nothing. Exit status: 0, or 1 for an error.",
        as_code.add_apply,
        as_code.apply,
    ),
    "references": Command(
        "Find the names of flags in code, and report the places to the server, from CI.",
        references.add_references,
        references.report_references,
    ),
    "stale": Command(
        "List flags that can leave the code, with the proof and which value to keep.",
        references.add_stale,
        references.list_stale,
    ),
}


class Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exits with another status than argparse's 2, which means that a plan has changes."""
        self.print_usage(sys.stderr)
        self.exit(FAILED, f"{self.prog}: {message}\n")


def add_options(parser: ArgumentParser, command: Command) -> None:
    parser.add_argument("--url", help="the server's address; default: FLAGADMIN_URL")
    parser.add_argument("--token", help="a token of the server; default: FLAGADMIN_TOKEN")
    command.add_options(parser)


def run(argv: Sequence[str]) -> int:
    """Runs a command, without the program's name. Returns its exit status."""
    name, *arguments = argv
    command = COMMANDS[name]
    parser = Parser(prog=f"flagadmin {name}", description=command.help, epilog=SERVER_OPTIONS)
    add_options(parser, command)
    options = parser.parse_args(arguments)
    try:
        return command.run(options)
    except ClientError as error:
        for line in str(error).splitlines():
            print(drop_controls(line), file=sys.stderr)
    except OSError as error:
        print(drop_controls(f"{error.filename or ''}: {error.strerror}"), file=sys.stderr)
    return FAILED
