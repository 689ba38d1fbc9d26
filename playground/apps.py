"""The playground app: evaluating flags and explaining the results."""

from datetime import timedelta

from django.apps import AppConfig

from flagadmin.http.error_responses import register_error_format
from flagadmin.server import background_tasks


class PlaygroundConfig(AppConfig):
    name = "playground"

    def ready(self) -> None:
        from flagadmin import change_checks
        from playground.ofrep.errors import PREFIX, error_body
        from playground.saved_contexts.guard import guard
        from playground.user_runs import worker

        change_checks.register(guard)
        register_error_format(PREFIX, error_body)

        background_tasks.run_every(timedelta(minutes=1), worker.resume)
        background_tasks.run_every(timedelta(hours=1), worker.delete_old_runs)
