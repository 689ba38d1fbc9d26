"""Converts another product's flags: ``manage.py convert launchdarkly flags.json > import.json``."""

import argparse
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from flagadmin.core.document import Document
from flagadmin.core.errors import choices
from importer.converting.changes import count_changes, describe_change, read_users
from importer.converting.convert import PRODUCTS, Conversion, Exactness, Missing, Options, convert_file
from importer.converting.strategies import DESCRIPTIONS, Choice
from importer.management.files import REFUSED, read_bytes, refusing, write_bytes

AUTO = "auto"


class Command(BaseCommand):
    help = (
        "Convert another product's flags to a file that imports accept. "
        "What became of each flag is written to standard error or, with --output, to standard output."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("source", choices=[*PRODUCTS, AUTO], help="whose file it is; auto recognizes it")
        parser.add_argument("file", help="JSON, YAML or TOML; - for standard input")
        parser.add_argument(
            "--from-environment", default="", help="the environment of the source, if it has several"
        )
        parser.add_argument(
            "--missing",
            choices=[*Missing],
            default=Missing.OFF,
            help="flags with parts that have no equivalent: import them off, or leave them out",
        )
        parser.add_argument(
            "--users",
            type=Path,
            help="a CSV of users: counts who changes, and whom to keep; default: generated users",
        )
        parser.add_argument(
            "--percentages",
            choices=[*Choice],
            default=Choice.NEW,
            help="; ".join(f"{choice}: {words}" for choice, words in DESCRIPTIONS.items()).replace("%", "%%"),
        )
        parser.add_argument(
            "--flag",
            action="append",
            default=[],
            metavar="FLAG=CHOICE",
            help="the same for one flag; can be repeated",
        )
        parser.add_argument(
            "--report", type=Path, help="write what became of each flag to this file, as JSON"
        )
        parser.add_argument(
            "--output", type=Path, help="write the result to this file; default: standard output"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with refusing(self.stderr):
            self._convert(options)

    def _convert(self, options: dict[str, Any]) -> None:
        chosen = _read_options(options)
        users = read_users(read_bytes(str(options["users"]))) if options["users"] else None
        if users is None and {chosen.choice, *chosen.choices.values()} & {Choice.KEEP, Choice.BOTH}:
            raise CommandError("To keep today's users, name them with --users FILE.csv.", returncode=REFUSED)
        conversion = convert_file(
            read_bytes(options["file"]),
            product="" if options["source"] == AUTO else options["source"],
            file_name=options["file"],
            options=chosen,
            identifiers=users.identifiers if users else {},
        )
        _check_flags(chosen, conversion)
        changes = {name: change.document() for name, change in count_changes(conversion, users).items()}
        users_name = options["users"].name if options["users"] else ""
        self._report(conversion, changes, users_name, self.stdout if options["output"] else self.stderr)
        if options["report"]:
            report = orjson.dumps(conversion.document(changes), option=orjson.OPT_INDENT_2)
            write_bytes(options["report"], report)
        if options["output"]:
            write_bytes(options["output"], conversion.dump())
        else:
            self.stdout.write(conversion.dump().decode())

    def _report(
        self, conversion: Conversion, changes: dict[str, Document], users: str, output: OutputWrapper
    ) -> None:
        for flag in conversion.flags:
            if flag.exactness is not Exactness.EXACT:
                sentences = [note.sentence for note in flag.notes]
                if change := changes.get(flag.name):
                    sentences.append(describe_change(change, users))
                output.write(f"{flag.exactness:12} {flag.name:40} {' '.join(sentences)}")
        for note in conversion.notes:
            output.write(note)
        counts = ", ".join(f"{count:,} {each}" for each, count in conversion.counts.items() if count)
        output.write(f"{conversion.source.product}: {counts or 'no flags'}")


def _check_flags(chosen: Options, conversion: Conversion) -> None:
    """Refuses choices for flags that are not in the file."""
    if unknown := sorted(chosen.choices.keys() - {flag.name for flag in conversion.flags}):
        message = f"--flag {unknown[0]}: the file has no such flag with percentages. "
        known = choices(flag.name for flag in conversion.flags if flag.has_percentages)
        raise CommandError(f"{message}Available: {known or 'none'}.", returncode=REFUSED)


def _read_options(options: dict[str, Any]) -> Options:
    choices: dict[str, Choice] = {}
    for entry in options["flag"]:
        name, _, choice = entry.rpartition("=")
        if not name or choice not in [*Choice]:
            message = f"--flag {entry}: must be FLAG=CHOICE, with one of {', '.join(Choice)}."
            raise CommandError(message, returncode=REFUSED)
        choices[name] = Choice(choice)
    return Options(
        Choice(options["percentages"]), choices, Missing(options["missing"]), options["from_environment"]
    )
