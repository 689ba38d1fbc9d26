"""The playground app: evaluating flags and explaining the results."""

from datetime import timedelta

from django.apps import AppConfig

from flagadmin.server import background_tasks


class PlaygroundConfig(AppConfig):
    name = "playground"

    def ready(self) -> None:
        from playground.user_runs import worker

        background_tasks.run_every(timedelta(minutes=1), worker.resume)
        background_tasks.run_every(timedelta(hours=1), worker.delete_old_runs)
