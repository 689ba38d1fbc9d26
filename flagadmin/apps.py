"""The app of the project package itself, with its management commands and static files."""

from django.apps import AppConfig
from django.conf import settings


class FlagadminConfig(AppConfig):
    """The project itself as an app: its management commands and static files."""

    name = "flagadmin"
    verbose_name = "flagadmin"

    def ready(self) -> None:
        from flagadmin.db.standby import watch_commits
        from flagadmin.server import loop_routes
        from flagadmin.server.constant_answers import ConstantAnswers
        from flagadmin.server.process_metrics import sample_worker

        for path in ("/healthz", "/health"):
            loop_routes.add_shortcut(path, ConstantAnswers())
        if settings.DATABASE_URL:  # the bundled database has no standby
            loop_routes.run_in_loop(watch_commits)
        if settings.METRICS_TOKEN:
            loop_routes.run_in_loop(sample_worker)
