"""Imports flags: ``manage.py import_flags export.json --project checkout --environment production``."""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError

from flagadmin.core.change_checks import BrokenExpectations, Refusal
from flagadmin.core.change_checks.comments import CommentRefused, check_comment, tidy_comment
from flagadmin.core.change_options import changing
from flagadmin.core.errors import Conflict
from groups.access import Caller
from importer.apply.execute import import_body, list_touched_places
from importer.body.schemas import parse_body
from importer.management.files import REFUSED, read_bytes, refusing, write_bytes
from importer.models import ImportRun
from importer.plan.build import plan_import
from importer.plan.import_plan import Action, Plan
from importer.report import plan_document
from importer.runs import try_out
from projects.access import may_refuse_changes

BAR_WIDTH = 30


class Command(BaseCommand):
    help = (
        "Import flags from an export file (or - for standard input). "
        "Exit status: 0 if imported, or if --check finds no issues; 2 if refused."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", help="an export or an import body, as JSON; - for standard input")
        parser.add_argument("--project", help="the project to import into; default: the project in the file")
        parser.add_argument(
            "--environment", help="the environment to import into; default: the environment in the file"
        )
        parser.add_argument(
            "--check", action="store_true", help="show what the import would do without writing anything"
        )
        parser.add_argument(
            "--report", type=Path, help="write a report with every flag to this file, as JSON"
        )
        parser.add_argument(
            "--ignore-expectations",
            action="store_true",
            help="import even if it breaks expectations of saved contexts and the project refuses that",
        )

        parser.add_argument("--comment", help="why: kept in the audit log; default: the comment in the file")

    def handle(self, *args: Any, **options: Any) -> None:
        with refusing(self.stderr):
            try:
                self._import(options)
            except BrokenExpectations as error:
                message = f"{error.message} --ignore-expectations saves it anyway."
                raise Conflict(message, details=error.problems) from None
            except CommentRefused as error:
                raise Conflict(f"{error.message} Give it with --comment.") from None
            except Refusal as error:
                raise error.as_app_error() from None

    def _import(self, options: dict[str, Any]) -> None:
        body = parse_body(
            read_bytes(options["file"]), project=options["project"], environment=options["environment"]
        )
        plan = plan_import(body, caller=Caller.system())
        self._print(plan, options["report"])
        if options["check"] and not plan.can_be_applied:
            raise CommandError("This file cannot be imported. Nothing was written.", returncode=REFUSED)
        plan.check()
        caller = Caller.system().asking(breaks_expectations=options["ignore_expectations"])
        make = partial(import_body, body, caller=caller, source=ImportRun.Source.COMMAND)
        with changing(comment=tidy_comment(options["comment"] or body.comment)):
            if options["check"]:
                return self._finish_check(plan, make)
            run = make(progress=show_progress)
        self.stdout.write(f"Imported into {run.project} / {run.environment}.")
        return None

    def _print(self, plan: Plan, report: Path | None) -> None:
        """Prints the plan as a table and writes the report file."""
        document = plan_document(plan)
        if report is not None:
            write_bytes(report, orjson.dumps(document, option=orjson.OPT_INDENT_2))
        for flag in document["flags"]:
            if flag["action"] != Action.SAME:
                self.stdout.write(f"{flag['action']:8} {flag['name']:40} {_describe(flag)}".rstrip())
        counts = ", ".join(f"{count} {action}" for action, count in plan.counts.items())
        self.stdout.write(f"{plan.project} / {plan.environment}: {counts}")
        for kind in ("errors", "permissions", "warnings"):
            for entry in document[kind]:
                self.stdout.write(f"{entry['message']} {'; '.join(entry['affectedItems'][:100])}".rstrip())

    def _finish_check(self, plan: Plan, make: Callable[[], ImportRun]) -> None:
        """Raises refusals of the whole import."""
        check_comment(list_touched_places(plan))
        if may_refuse_changes(plan.project):
            try_out(make)
        self.stdout.write("This file can be imported. Nothing was written.")


def _describe(flag: dict[str, Any]) -> str:
    changes = [
        f"{change['part']} {change['before'] or 'none'} → {change['after'] or 'none'}"
        for change in flag.get("changes", ())
    ]
    return flag.get("reason") or flag.get("summary") or "; ".join(changes)


def show_progress(step: str, done: int, total: int) -> None:
    """Shows a bar on a terminal; prints nothing to a file or pipe."""
    if sys.stderr.isatty() and step and total:
        filled = round(BAR_WIDTH * done / total)
        sys.stderr.write(f"\r[{'#' * filled:{BAR_WIDTH}}] {done:,} of {total:,}: {step:12}")
        sys.stderr.write("\n" if step == "history" else "")
        sys.stderr.flush()
