"""manage.py backfill_versions: makes versions of states before the upgrade to 1.4.0. Servers do so, too."""

from argparse import ArgumentParser
from random import Random
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from projects.history.frozen.backfill import compare_moments, fill_chunk


class Command(BaseCommand):
    help = (
        "Make versions of flags and segments as they were before the upgrade to 1.4.0, from the audit log. Servers do "
        "so in the background after the upgrade; with --verify, this checks the result. It may be interrupted and "
        "started again. Until it is done, moments before the upgrade are unknown."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--verify",
            type=int,
            default=0,
            metavar="MOMENTS",
            help="Compare so many random moments with the audit log afterwards.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        done = 0
        while events := fill_chunk():
            done += events
            self.stdout.write(f"{done:,} events taken back.")
        self.stdout.write("Versions are complete.")
        if options["verify"]:
            self._verify(options["verify"])

    def _verify(self, count: int) -> None:
        different = compare_moments(Random(), count)
        if different:
            listed = "; ".join(different[:10])
            raise CommandError(f"{len(different)} of {count:,} moments differ from the audit log: {listed}.")
        self.stdout.write(f"{count:,} moments equal the audit log.")
