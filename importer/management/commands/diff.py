"""Compares flags in files: ``manage.py diff old/ new/ --at-most 20``."""

import argparse
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from flagadmin.client.report import drop_controls, write_markdown, write_text
from flagadmin.client.server import BadFiles
from importer.converting.changes import read_users
from importer.converting.files import read_document
from importer.diff.compare import Above, Side, compare_sides, read_side
from importer.diff.terraform import is_plan, read_plan
from importer.management.files import REFUSED, read_bytes, read_percent, refusing, write_bytes

ABOVE = 1


class Command(BaseCommand):
    help = (
        "Compare flags in two files or directories, or in a plan of Terraform, and say who would get something else. "
        "Needs no server and no database. Exit status: 0; 1 if a flag changes for more than --at-most; 2 for an error."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "before",
            type=Path,
            help="flags as code, an export, or a file that `convert` reads; or a plan of Terraform as JSON",
        )
        parser.add_argument(
            "after", type=Path, nargs="?", help="the same later; not for a plan, which has both"
        )
        parser.add_argument(
            "--environment", default="", help="only this environment; default: all that both have"
        )
        parser.add_argument("--users", type=Path, help="a CSV of users; default: generated users")
        parser.add_argument(
            "--at-most",
            type=read_percent,
            metavar="PERCENT",
            help="of users whose result of a flag changes, among those who meet its conditions; more is exit status 1",
        )
        parser.add_argument("--markdown", type=Path, help="write a comment for a pull request to this file")
        parser.add_argument("--json", type=Path, help="write the differences to this file")

    def handle(self, *args: Any, **options: Any) -> None:
        with refusing(self.stderr):
            try:
                before, after = _read_sides(options)
            except BadFiles as error:
                raise CommandError(drop_controls(str(error)), returncode=REFUSED) from None
            except OSError as error:
                message = f"Cannot read {error.filename}: {error.strerror}"
                raise CommandError(message, returncode=REFUSED) from None
            users = options["users"]
            answer, above = compare_sides(
                before,
                after,
                now=timezone.now(),
                environment=options["environment"],
                users=read_users(read_bytes(str(users), REFUSED)).contexts if users else None,
                users_name=users.name if users else "",
                at_most=options["at_most"],
            )
        self._write(answer, above, options)
        if above:
            sentences = [each.sentence for each in above]
            message = f"More than {options['at_most']:g} % may change. {drop_controls(' '.join(sentences))}"
            raise CommandError(message, returncode=ABOVE)

    def _write(self, answer: dict[str, Any], above: list[Above], options: dict[str, Any]) -> None:
        for line in write_text(answer, (), is_plan=True):
            self.stdout.write(drop_controls(line))
        if not answer["changes"]:
            self.stdout.write("The flags are the same.")
        warnings = [each.sentence for each in above]
        if options["markdown"]:
            marked = answer | {"notes": [*warnings, *answer["notes"]]}
            write_bytes(options["markdown"], ("\n".join(write_markdown(marked, ())) + "\n").encode(), REFUSED)
        if options["json"]:
            document = answer | {"aboveLimit": [each._asdict() for each in above]}
            write_bytes(options["json"], orjson.dumps(document, option=orjson.OPT_INDENT_2), REFUSED)


def _read_sides(options: dict[str, Any]) -> tuple[Side, Side]:
    first, second, environment = options["before"], options["after"], options["environment"]
    if second is not None:
        return read_side(first, environment), read_side(second, environment)
    if first.is_dir() or not is_plan(plan := read_document(first.read_bytes(), first.name)):
        message = f"{first} is no plan of Terraform (terraform show -json). Name the file to compare it with."
        raise CommandError(message, returncode=REFUSED)
    return read_plan(plan)
