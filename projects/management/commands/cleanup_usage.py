"""manage.py cleanup_usage: deletes old usage data. `serve` also does this, every ten minutes."""

from typing import Any

from django.core.management.base import BaseCommand

from projects.applications.cleanup import clean_usage


class Command(BaseCommand):
    help = (
        "Delete hourly counts older than two days, and instances and applications not seen for thirty days."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        done = clean_usage()
        self.stdout.write(
            f"Deleted {done.hours} hourly counts, {done.instances} instances and"
            f" {done.applications} applications; {done.lines} rows of applications lists rebuilt."
        )
