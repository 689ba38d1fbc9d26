"""The releases app: changes that are reviewed before they are made."""

from django.apps import AppConfig


class ReleasesConfig(AppConfig):
    name = "releases"

    def ready(self) -> None:
        from flagadmin.core import change_checks
        from flagadmin.core.server import background_tasks
        from playground.comparison import future
        from releases import changes
        from releases.forecast import forecast
        from releases.gate import guard
        from releases.plans import due as plans
        from releases.plans.changes import PLAN_KINDS
        from releases.schedules import due

        changes.register(PLAN_KINDS)
        change_checks.register(guard)
        future.register(forecast)
        background_tasks.run_every(due.INTERVAL, due.apply_due, everywhere=True)
        background_tasks.run_every(plans.INTERVAL, plans.look_at_due, everywhere=True)
