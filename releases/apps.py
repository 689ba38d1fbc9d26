"""The releases app: changes that are reviewed before they are made."""

from datetime import timedelta

from django.apps import AppConfig


class ReleasesConfig(AppConfig):
    name = "releases"

    def ready(self) -> None:
        from flagadmin.core import change_checks
        from flagadmin.core.hook import add, later, provide
        from flagadmin.core.server import background_tasks

        change_checks.register(later("releases.gate:guard"))
        for hook, function in {
            "flagadmin.core.change_checks.override.settle": "releases.schedules.later:settle",
            "groups.groups.actions.find_approvals": "releases.requests.approvers:find_approvals",
            "groups.groups.actions.find_without_approvers": "releases.requests.approvers:find_without_approvers",
            "projects.flags.queries.check_arrivals": "releases.kept_names:check_arrivals",
            "playground.saved_contexts.actions.check_watched": "releases.gate:check_saved_context",
            "playground.comparison.compare.forecast": "releases.forecast:forecast",
            "projects.used_by.queries.find_planned": "releases.kept_names:find_planned",
            "projects.used_by.queries.find_segments_ahead": "releases.kept_names:find_segments_ahead",
        }.items():
            provide(hook, function)
        add("projects.history.retention.needed", "releases.requests.queries:find_oldest_needed")
        for task in ("releases.schedules.due:apply_due", "releases.plans.due:look_at_due"):
            background_tasks.run_every(timedelta(seconds=1), later(task), everywhere=True)
