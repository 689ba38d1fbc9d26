"""The releases app: changes that are reviewed before they are made."""

from django.apps import AppConfig


class ReleasesConfig(AppConfig):
    name = "releases"

    def ready(self) -> None:
        from flagadmin.core import change_checks
        from flagadmin.core.server import background_tasks
        from playground.comparison import future
        from projects.used_by import planned
        from releases.changes import flags, segments  # noqa: F401 - register kinds of changes
        from releases.forecast import forecast
        from releases.gate import guard
        from releases.plans import changes as of_plans  # noqa: F401
        from releases.plans import due as plans
        from releases.safeguards import changes as of_safeguards  # noqa: F401
        from releases.schedules import due
        from releases.used_by import find_planned, find_segments_ahead

        change_checks.register(guard)
        future.forecast.provide(forecast)
        planned.find_planned.provide(find_planned)
        planned.find_segments_ahead.provide(find_segments_ahead)
        background_tasks.run_every(due.INTERVAL, due.apply_due, everywhere=True)
        background_tasks.run_every(plans.INTERVAL, plans.look_at_due, everywhere=True)
