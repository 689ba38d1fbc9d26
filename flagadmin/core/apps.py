"""The core app, which all other apps use. It has template tags but no models, and does not know about flags."""

from django.apps import AppConfig
from django.conf import settings


class CoreConfig(AppConfig):
    name = "flagadmin.core"
    label = "core"

    def ready(self) -> None:
        from flagadmin.core.hook import add, later
        from flagadmin.core.server import loop_routes

        add("loop routes", "flagadmin.core.server.ready_answers:add_health")
        if settings.DATABASE_URL:  # the bundled database has no standby
            loop_routes.run_in_loop(later("flagadmin.core.db.standby:watch_commits"))
        if settings.METRICS_TOKEN:
            loop_routes.run_in_loop(later("flagadmin.core.server.process_metrics:sample_worker"))
