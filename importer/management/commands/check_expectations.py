"""Checks what saved contexts expect: ``manage.py check_expectations --environment production``."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from flagadmin.errors import AppError
from groups.access import Caller
from importer.body.schemas import parse_body
from importer.expectations import checked_if_imported
from importer.management.commands.import_flags import read_bytes
from importer.plan.build import plan_import
from playground.saved_contexts.checks import chosen_expectations
from playground.saved_contexts.expectations import Checked, check_expectations
from playground.saved_contexts.report import junit, summary, table

NOT_MET, FAILED = 1, 2


class Command(BaseCommand):
    help = (
        "Check what saved contexts expect of flags. "
        "Exit status: 0 if all expectations are met; 1 if some are not; 2 if they could not be checked."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--project", action="append", help="only flags of this project; may be repeated")
        parser.add_argument(
            "--environment", action="append", help="only in this environment; may be repeated"
        )
        parser.add_argument(
            "--as-if-imported",
            metavar="FILE",
            help="check the flags as they would be after importing this file (- for standard input); writes nothing",
        )
        parser.add_argument(
            "--into",
            metavar="PROJECT/ENVIRONMENT",
            help="where the file would be imported; default: the project and environment in it",
        )
        parser.add_argument("--junit", type=Path, metavar="FILE", help="write the results as JUnit XML")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = self._checked(options)
        except AppError as error:
            for problem in error.details:
                self.stderr.write(f"{problem.path}: {problem.message}")
            raise CommandError(error.message, returncode=FAILED) from None
        if options["junit"] is not None:
            _write(options["junit"], junit(found))
        for line in table(found):
            self.stdout.write(line)
        if not all(one.met for one in found):
            raise CommandError(f"{summary(found)}.", returncode=NOT_MET)
        self.stdout.write(f"{summary(found)}.")

    def _checked(self, options: dict[str, Any]) -> list[Checked]:
        caller = Caller.system()
        given = {"projects": options["project"], "environments": options["environment"]}
        file, into = options["as_if_imported"], options["into"]
        if file is None:
            if into is not None:
                raise CommandError("--into needs --as-if-imported.", returncode=FAILED)
            return check_expectations(caller, chosen_expectations(caller, given))
        return self._if_imported(file, into, given, caller)

    def _if_imported(
        self, file: str, into: str | None, given: Mapping[str, Any], caller: Caller
    ) -> list[Checked]:
        project, slash, environment = (into or "").partition("/")
        if into is not None and not (project and slash and environment):
            raise CommandError(f"--into must be PROJECT/ENVIRONMENT, not {into}.", returncode=FAILED)
        body = parse_body(_read(file), project=project or None, environment=environment or None)
        plan = plan_import(body, caller=caller)
        plan.check()
        return checked_if_imported(plan, given, caller=caller)


def _read(file: str) -> bytes:
    try:
        return read_bytes(file)
    except CommandError as error:
        raise CommandError(str(error), returncode=FAILED) from None


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise CommandError(f"Cannot write {path}: {error.strerror}", returncode=FAILED) from None
