"""The releases app: changes that are reviewed before they are made."""

from django.apps import AppConfig


class ReleasesConfig(AppConfig):
    name = "releases"

    def ready(self) -> None:
        from flagadmin.core import change_checks
        from flagadmin.core.server import background_tasks
        from groups.groups import approvals
        from playground.comparison import future
        from playground.saved_contexts.actions import check_watched
        from projects.flags import arrivals
        from projects.used_by import queries
        from releases.changes import flags, segments  # noqa: F401 - register kinds of changes
        from releases.context_watch import check_saved_context
        from releases.forecast import forecast
        from releases.gate import check_known, guard
        from releases.kept_names import check_arrivals, find_planned, find_segments_ahead
        from releases.plans import changes as of_plans  # noqa: F401
        from releases.plans import due as plans
        from releases.requests import approvers
        from releases.safeguards import changes as of_safeguards  # noqa: F401
        from releases.schedules import due

        change_checks.register(guard)
        change_checks.check_known.provide(check_known)
        approvals.find_approvals.provide(approvers.find_approvals)
        approvals.find_without_approvers.provide(approvers.find_without_approvers)
        arrivals.check_arrivals.provide(check_arrivals)
        check_watched.provide(check_saved_context)
        future.forecast.provide(forecast)
        queries.find_planned.provide(find_planned)
        queries.find_segments_ahead.provide(find_segments_ahead)
        background_tasks.run_every(due.INTERVAL, due.apply_due, everywhere=True)
        background_tasks.run_every(plans.INTERVAL, plans.look_at_due, everywhere=True)
