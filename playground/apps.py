"""The playground app: evaluating flags and explaining the results."""

import re
from datetime import timedelta

from django.apps import AppConfig

from flagadmin.core.server import background_tasks, loop_routes


class PlaygroundConfig(AppConfig):
    name = "playground"

    def ready(self) -> None:
        from flagadmin.core import change_checks
        from flagadmin.core.hook import add, later, provide
        from projects.deletion import kept_names

        change_checks.register(later("playground.saved_contexts.guard:guard"))
        kept_names.register("playground.saved_contexts.actions")
        provide("projects.flags.lists.cells.measure_people", "playground.comparison.people:measure_people")
        add("playground.comparison.states", "playground.comparison.past:PAST")
        add("playground.comparison.states", "playground.comparison.draft:DRAFT")
        loop_routes.add_evaluations(re.compile(r"/api/admin/playground(/advanced)?/?"))
        loop_routes.run_in_loop(later("playground.compile_ahead:start"))

        background_tasks.run_every(timedelta(minutes=1), later("playground.user_runs.worker:resume"))
        background_tasks.run_every(
            timedelta(minutes=1), later("playground.comparison.versions:count_recent_changes")
        )
        background_tasks.run_every(timedelta(hours=1), later("playground.user_runs.worker:delete_old_runs"))
