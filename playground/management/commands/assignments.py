"""Who had a flag at a time: ``manage.py assignments orders.csv --environment production --flag dark-theme``."""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from flagadmin.core.errors import AppError
from groups.access import Caller
from playground.outcomes.answer import CHUNK, DEFAULT_LAG, Assignments, answer_table
from playground.outcomes.history import Sight, read_histories, read_now
from playground.outcomes.sql import check_query, open_query
from playground.outcomes.table import Table


class Command(BaseCommand):
    help = (
        "Say who had a flag at a time, for each row of a table. Its columns are context fields and time; it is CSV or "
        "JSON lines, also compressed with gzip, or Parquet. Writes CSV to "
        "standard output; progress and counts to standard error."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("file", nargs="?", metavar="FILE", help="the table; - for standard input")
        source.add_argument("--query", metavar="NAME", help="of FLAGADMIN_QUERIES, whose rows are the table")
        parser.add_argument("--environment", required=True)
        parser.add_argument("--flag", action="append", required=True, help="may be repeated")
        parser.add_argument(
            "--lag",
            type=int,
            default=DEFAULT_LAG,
            metavar="SECONDS",
            help=f"until applications notice a change (default {DEFAULT_LAG}): rows within it are in between",
        )
        parser.add_argument(
            "--spreadsheet",
            action="store_true",
            help="put an apostrophe before text that looks like a formula",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with ExitStack() as files:
            try:
                stream: Any = sys.stdin.buffer
                if options["query"]:
                    check_query(Caller.system(), options["query"])
                    stream = files.enter_context(open_query(options["query"]))
                elif options["file"] != "-":
                    stream = files.enter_context(Path(options["file"]).open("rb"))
                self._answer(stream, options)
            except OSError as error:
                raise CommandError(f"Cannot read {options['file']}: {error.strerror}") from None
            except AppError as error:
                for problem in error.details:
                    self.stderr.write(str(problem))
                raise CommandError(error.message) from None

    def _answer(self, stream: Any, options: dict[str, Any]) -> None:
        now, flags = read_now(), list(dict.fromkeys(options["flag"]))
        histories = read_histories(
            Sight.of(Caller.system(), options["environment"]), options["environment"], flags
        )
        assignments = Assignments(histories, lag=options["lag"], spreadsheet=options["spreadsheet"])
        for part in answer_table(Table(stream, until=now), assignments, CHUNK):
            self.stdout.write(part, ending="")
            if assignments.rows:
                self.stderr.write(f"{assignments.rows:,} rows")
        for flag in assignments.summarize()["flags"]:
            self.stderr.write(_describe(flag))


def _describe(flag: dict[str, Any]) -> str:
    counts = ", ".join(f"{count:,} {result}" for result, count in flag["results"].items() if count)
    lacks = ", ".join(f"{field} ({count:,} rows)" for field, count in flag["lacks"].items())
    return f"{flag['name']}: {counts or 'no rows'}." + (f" The table lacks {lacks}." if lacks else "")
