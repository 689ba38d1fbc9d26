"""The playground app: evaluating flags and explaining the results."""

import re
from datetime import timedelta

from django.apps import AppConfig

from flagadmin.http.error_responses import register_error_format
from flagadmin.server import background_tasks, loop_routes


class PlaygroundConfig(AppConfig):
    name = "playground"

    def ready(self) -> None:
        from flagadmin import change_checks
        from playground import compile_ahead
        from playground.ofrep import tickets
        from playground.ofrep.change_events import change_events
        from playground.ofrep.errors import PREFIX, error_body
        from playground.saved_contexts.guard import guard
        from playground.user_runs import worker

        change_checks.register(guard)
        register_error_format(PREFIX, error_body)
        loop_routes.add_stream(tickets.PATH, change_events.stream)
        loop_routes.add_evaluations(
            re.compile(r"/ofrep/.*|/api/frontend/?|/api/admin/playground(/advanced)?/?", re.DOTALL)
        )
        loop_routes.run_in_loop(change_events.use_tokens)
        loop_routes.run_in_loop(change_events.watch_clock)
        loop_routes.run_in_loop(compile_ahead.start)

        background_tasks.run_every(timedelta(minutes=1), worker.resume)
        background_tasks.run_every(timedelta(hours=1), worker.delete_old_runs)
