"""The playground app: evaluating flags and explaining the results."""

import re
from datetime import timedelta

from django.apps import AppConfig

from flagadmin.core.server import background_tasks, loop_routes


class PlaygroundConfig(AppConfig):
    name = "playground"

    def ready(self) -> None:
        from flagadmin.core import change_checks
        from playground import compile_ahead
        from playground.comparison import kinds, people
        from playground.comparison.versions import count_recent_changes
        from playground.saved_contexts import actions as context_names
        from playground.saved_contexts.guard import guard
        from playground.user_runs import worker
        from projects.deletion import kept_names
        from projects.flags.lists.people import measure_people

        change_checks.register(guard)
        kept_names.register(context_names)
        measure_people.provide(people.measure_people)
        kinds.register("playground.comparison.past.PAST")
        kinds.register("playground.comparison.draft.DRAFT")
        loop_routes.add_evaluations(re.compile(r"/api/admin/playground(/advanced)?/?"))
        loop_routes.run_in_loop(compile_ahead.start)

        background_tasks.run_every(timedelta(minutes=1), worker.resume)
        background_tasks.run_every(timedelta(minutes=1), count_recent_changes)
        background_tasks.run_every(timedelta(hours=1), worker.delete_old_runs)
