"""Moves here from an Unleash server: ``manage.py move plan --from https://unleash.example.com``."""

import argparse
import os
import shlex
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from flagadmin.core.errors import AppError, ValidationError
from importer.management.files import read_bytes, write_bytes
from importer.moving.back import move_back, read_bodies, write_files
from importer.moving.leave_out import LISTS, Choice, read_choices
from importer.moving.proving.answers import (
    MAX_USERS,
    TokenProof,
    count_lines,
    describe_proof,
    summarize_proofs,
)
from importer.moving.proving.prove import prove
from importer.moving.reading.installation import Installation
from importer.moving.reading.source import Source
from importer.moving.report import Report, strip_controls
from importer.moving.run import Round, WantedMove, follow, move_from

MAX_SUGGESTED = 20
NOT_DONE = 2
"""The exit status of a plan with work to do, a move that omits something, and a proof of differences."""


class Command(BaseCommand):
    help = (
        "Move here from an Unleash server: plan, apply, then prove that SDKs get the same. "
        "Exit status: 0 if nothing is left to do, if all was moved, or if all is equal; 2 if not; 1 for an error."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "step",
            choices=("plan", "apply", "prove", "follow", "back"),
            help="plan: what would be done; apply: do it; prove: compare what SDKs get; "
            "follow: apply and prove again and again until stopped; back: write what is here to an Unleash server",
        )
        parser.add_argument("--from", dest="address", default="", help="the server's address")
        parser.add_argument("--to", default="", help="the address of the server that back writes to")
        parser.add_argument(
            "--files", type=Path, help="back: write import files for Unleash to this folder; with --to, both"
        )
        parser.add_argument("--check", action="store_true", help="back: only say what would be written")
        parser.add_argument(
            "--token",
            default="",
            help="an admin token of that server; default: the environment variable UNLEASH_TOKEN, "
            "which other users of this machine cannot see; back needs an admin's personal token (user:…)",
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
            "--leave-out",
            action="append",
            default=[],
            metavar="FLAG|KIND:NAME",
            help="leave this flag there, with those that depend on it; or "
            + ", ".join(f"{kind}:NAME" for kind in LISTS)
            + "; may be given several times; the plan names what cannot come otherwise",
        )
        parser.add_argument(
            "--users",
            action="append",
            default=[],
            metavar="NUMBER|FILE.csv",
            help="users of a proof: a number of generated ones, up to 100,000 (default: 10,000), or a file of your own "
            "with a header of context fields; may be given twice, for both",
        )
        parser.add_argument(
            "--overwrite",
            action="store_true",
            help="also change what was edited here since the last move; without it, that stays and is named",
        )
        parser.add_argument(
            "--every", type=float, default=15.0, help="seconds between two rounds of follow; default: 15"
        )
        parser.add_argument("--report", type=Path, help="write everything to this file, as JSON")
        parser.add_argument("--json", action="store_true", help="print the report as JSON instead of text")

    def handle(self, *args: Any, **options: Any) -> None:
        self.options = options
        self.users, self.csv = _read_users(options["users"])
        if not 1 <= options["every"] <= 3_600:
            raise CommandError("--every must be 1 to 3,600 seconds.")
        self.wanted = WantedMove(
            projects=options["project"],
            database=options["database"] or os.environ.get("UNLEASH_DATABASE_URL", ""),
            left_out=_read_choices(options["leave_out"]),
            overwrite=options["overwrite"],
        )
        try:
            if options["step"] == "back":
                return self._move_back()
            self.source = self._open("address", "--from")
            step = {"prove": self._prove, "follow": self._follow}.get(options["step"], self._move)
            step()
        except ValidationError as error:
            details = "; ".join(map(str, error.details))
            raise CommandError(strip_controls(f"--users: {details}")) from None
        except AppError as error:
            raise CommandError(strip_controls(error.message)) from None

    def _open(self, option: str, name: str) -> Source:
        if not self.options[option]:
            raise CommandError(f"{name} is required: the address of the Unleash server.")
        token = self.options["token"] or os.environ.get("UNLEASH_TOKEN", "")
        if not token:
            raise CommandError("Give an admin token of that server (--token or UNLEASH_TOKEN).")
        self.told_at = float("-inf")
        return Source(self.options[option], token, tell=self._tell)

    def _tell(self, doing: str) -> None:
        """Shows the current step, at most once a second."""
        now = time.monotonic()
        if now - self.told_at >= 1:
            self.told_at = now
            self.stderr.write(strip_controls(f"{doing} …"), self.style.NOTICE)

    def _move_back(self) -> None:
        options, report = self.options, Report()
        if not options["to"] and not options["files"]:
            raise CommandError("back needs --to or --files.")
        if options["files"]:
            try:
                bodies = read_bodies(self.wanted.projects)
                report.lines += write_files(options["files"], bodies, write=not options["check"])
            except OSError as error:
                raise CommandError(f"Cannot write {options['files']}: {error.strerror}") from None
        if options["to"]:
            target = self._open("to", "--to")
            report.lines += move_back(target, self.wanted.projects, write=not options["check"]).lines
        self._write_report(report.document())
        for text in () if options["json"] else report.texts():
            self.stdout.write(text)
        if report.is_refused:
            raise CommandError("Nothing was written there.", returncode=NOT_DONE)

    def _move(self) -> None:
        writes = self.options["step"] == "apply"
        installation, report = move_from(self.source, self.wanted, write=writes)
        self._write_report(report.document())
        if not self.options["json"]:
            self._print(installation, report, writes=writes)
        if report.is_refused:
            written = "Nothing was written." if writes else "Apply would refuse this, and write nothing."
            raise CommandError(f"{written}{_suggest(report)}", returncode=NOT_DONE)
        if report.has_conflicts or (report.has_work and not writes):
            raise SystemExit(NOT_DONE)

    def _print(self, installation: Installation, report: Report, *, writes: bool) -> None:
        self.stdout.write(f"{installation.address}: Unleash {installation.version}")
        for text in report.texts():
            self.stdout.write(text)
        self.stdout.write(count_lines(report))
        if not writes:
            self.stdout.write("Nothing was written.")

    def _prove(self) -> None:
        proofs = []
        for proof in self._proofs():
            proofs.append(proof)
            if not self.options["json"]:
                for line in describe_proof(proof, self.users):
                    self.stdout.write(strip_controls(line))
        tokens = [proof.document() for proof in proofs]
        self._write_report({"users": self.users, "tokens": tokens})
        summary = summarize_proofs(proofs)
        if not proofs or not all(proof.is_equal for proof in proofs):
            raise CommandError(summary, returncode=NOT_DONE)
        if not self.options["json"]:
            self.stdout.write(summary)

    def _proofs(self) -> Iterator[TokenProof]:
        wanted = self.wanted
        return prove(
            self.source,
            users=self.users,
            csv=self.csv,
            projects=wanted.projects,
            left_out=wanted.left_out,
        )

    def _follow(self) -> None:
        with _stopped_by_signals() as stopping:
            last = Round(problem="There was no round.")
            rounds = follow(
                self.source,
                move=lambda: move_from(self.source, self.wanted, write=True)[1],
                prove=lambda: list(self._proofs()),
                every=self.options["every"],
                stopping=stopping,
            )
            printed: list[str] = []
            for last in rounds:
                printed = self._print_round(last, printed)
        if not last.is_settled:
            raise SystemExit(NOT_DONE)

    def _print_round(self, current: Round, printed: list[str]) -> list[str]:
        """Prints the news since the last round, and returns all lines of this one."""
        lines = [current.problem] if current.problem else []
        if current.report is not None:
            lines += current.report.texts()
        for proof in current.proofs:
            lines += [] if proof.is_equal else describe_proof(proof, self.users)
        if not current.problem:
            lines.append(summarize_proofs(current.proofs))
        self.told_at = float("inf")  # later rounds only report news
        if not self.options["json"]:
            now = timezone.now()
            for line in lines if lines != printed else lines[-1:]:
                self.stdout.write(f"{now:%H:%M:%S} {strip_controls(line)}")
        proofs = [proof.document() for proof in current.proofs]
        report = current.report.document() if current.report else None
        self._write_report({"problem": current.problem, "moved": report, "tokens": proofs})
        return lines

    def _write_report(self, document: Any) -> None:
        content = orjson.dumps(document, option=orjson.OPT_INDENT_2)
        if self.options["json"]:
            self.stdout.write(content.decode())
        if (path := self.options["report"]) is not None:
            write_bytes(path, content)


def _read_choices(values: list[str]) -> list[Choice]:
    try:
        return read_choices(values, "--leave-out")
    except ValidationError as error:
        details = "; ".join(f"{problem.path} {problem.message}" for problem in error.details)
        raise CommandError(strip_controls(details)) from None


def _suggest(report: Report) -> str:
    """The options with which everything else moves."""
    if not (choices := report.choices):
        return ""
    more = f" and {len(choices) - MAX_SUGGESTED:,} more" if len(choices) > MAX_SUGGESTED else ""
    options = shlex.join(part for choice in choices[:MAX_SUGGESTED] for part in ("--leave-out", choice))
    return f"\nTo move everything else: {strip_controls(options)}{more}"


def _read_users(values: list[str]) -> tuple[int, bytes]:
    """Reads how many users to generate, and the user's own file."""
    users, csv = (10_000 if not values else 0), b""
    for value in values:
        if value.isdecimal():
            users = int(value)
            if not 1 <= users <= MAX_USERS:
                raise CommandError(f"--users must be 1 to {MAX_USERS:,}.")
        else:
            csv = read_bytes(value)
    return users, csv


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """Set by Ctrl-C and SIGTERM: the current step is completed."""
    stopping = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stopping.set()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
