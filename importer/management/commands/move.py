"""Moves here from an Unleash server: ``manage.py move plan --from https://unleash.example.com``."""

import argparse
import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError

from importer.moving.database import SourceDatabase, open_database
from importer.moving.installation import Installation
from importer.moving.move import move
from importer.moving.prove import TokenProof, prove
from importer.moving.read_hidden import add_hidden
from importer.moving.reading import read_installation
from importer.moving.report import Report, plain
from importer.moving.source import Source, SourceError

NOT_DONE = 2
"""The exit status of a plan with something to do, a move that leaves something out, and a proof of differences."""
SHOWN = 50
"""Flags of one token whose differences are printed. A report has all."""


class Command(BaseCommand):
    help = (
        "Move here from an Unleash server: plan, apply, then prove that SDKs get the same. "
        "Exit status: 0 if nothing is left to do, if all was moved, or if all is equal; 2 if not; 1 for an error."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "step",
            choices=("plan", "apply", "prove"),
            help="plan: what would be done; apply: do it; prove: compare what SDKs get",
        )
        parser.add_argument("--from", dest="address", required=True, help="the server's address")
        parser.add_argument(
            "--token",
            default="",
            help="an admin token of that server; default: the environment variable UNLEASH_TOKEN, "
            "which other users of this machine cannot see",
        )
        parser.add_argument(
            "--database",
            default="",
            help="the URL of that server's database, for what its API hides: passwords, groups, roles, access, usage, "
            "history; nothing is written there; default: the environment variable UNLEASH_DATABASE_URL",
        )
        parser.add_argument(
            "--project", action="append", default=[], help="only this project; may be given several times"
        )
        parser.add_argument(
            "--users",
            type=int,
            default=10_000,
            help="generated users of a proof, up to 100,000; default: 10,000",
        )
        parser.add_argument(
            "--overwrite",
            action="store_true",
            help="also change what was edited here since the last move; without it, that stays and is named",
        )
        parser.add_argument("--report", type=Path, help="write everything to this file, as JSON")
        parser.add_argument("--json", action="store_true", help="print the report as JSON instead of text")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 1 <= options["users"] <= 100_000:
            raise CommandError("--users must be 1 to 100,000.")
        try:
            source = Source(options["address"], options["token"] or os.environ.get("UNLEASH_TOKEN", ""))
            if options["step"] == "prove":
                self._prove(source, options)
            else:
                self._move(source, options)
        except SourceError as error:
            raise CommandError(plain(str(error))) from None

    def _move(self, source: Source, options: dict[str, Any]) -> None:
        writes = options["step"] == "apply"
        installation = read_installation(source, options["project"])
        with self._opened(options) as database:
            if database is not None:
                add_hidden(installation, database)
            report = move(installation, write=writes, overwrite=options["overwrite"])
        self._write_report(options, report.document())
        if not options["json"]:
            self._print(installation, report, writes=writes)
        if report.is_refused:
            written = "Nothing was written." if writes else "Apply would refuse this, and write nothing."
            raise CommandError(written, returncode=NOT_DONE)
        if report.has_conflicts or (report.has_work and not writes):
            raise SystemExit(NOT_DONE)

    def _opened(self, options: dict[str, Any]) -> AbstractContextManager[SourceDatabase | None]:
        url = options["database"] or os.environ.get("UNLEASH_DATABASE_URL", "")
        return open_database(url) if url else nullcontext()

    def _print(self, installation: Installation, report: Report, *, writes: bool) -> None:
        self.stdout.write(f"{installation.address}: Unleash {installation.version}")
        for text in report.texts():
            self.stdout.write(text)
        self.stdout.write(_count(report))
        if not writes:
            self.stdout.write("Nothing was written.")

    def _prove(self, source: Source, options: dict[str, Any]) -> None:
        proofs = []
        for proof in prove(source, users=options["users"], projects=options["project"]):
            proofs.append(proof)
            if not options["json"]:
                self._print_proof(proof, options["users"])
        tokens = [proof.document() for proof in proofs]
        self._write_report(options, {"users": options["users"], "tokens": tokens})
        if not proofs:
            raise CommandError("There is no SDK token to compare with.", returncode=NOT_DONE)
        if unequal := sum(not proof.is_equal for proof in proofs):
            raise CommandError(
                f"{unequal} of {len(proofs)} tokens get something else here.", returncode=NOT_DONE
            )
        if not options["json"]:
            self.stdout.write(f"All {len(proofs)} tokens get the same here.")

    def _print_proof(self, proof: TokenProof, users: int) -> None:
        said = f"{len(proof.differences):,} of {proof.flags:,} flags differ for {users:,} users"
        lines = [f"token {proof.name} ({proof.environment}): {proof.problem or proof.note or said}"]
        for each in proof.differences[:SHOWN]:
            lines.append(f"  {each.flag}: {each.users:,} of {each.of:,}: {each.reason}")
            lines += [f"    {each.example}"] if each.example else []
        if proof.spellings:
            lines.append(f"  {len(proof.spellings):,} flags are written otherwise and give the same results:")
        lines += [f"  {each.flag}: {each.reason}" for each in proof.spellings[:SHOWN]]
        for line in lines:
            self.stdout.write(plain(line))

    def _write_report(self, options: dict[str, Any], document: Any) -> None:
        content = orjson.dumps(document, option=orjson.OPT_INDENT_2)
        if options["json"]:
            self.stdout.write(content.decode())
        if (path := options["report"]) is not None:
            try:
                path.write_bytes(content)
            except OSError as error:
                raise CommandError(f"Cannot write {path}: {error.strerror}") from None


def _count(report: Report) -> str:
    counted = [f"{count:,} {kind}" for kind, count in report.counts.items() if count]
    return f"{', '.join([*counted, f'{report.same:,} flags are the same'])}."
