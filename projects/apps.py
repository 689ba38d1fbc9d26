"""The projects app: projects, flags, strategies, usage reports and the API for SDKs."""

from datetime import timedelta

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ProjectsConfig(AppConfig):
    name = "projects"
    verbose_name = "Projects"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from flagadmin.server import background_tasks, loop_routes
        from flagadmin.server.event_streams import streams
        from projects.applications.cleanup import clean_usage
        from projects.client_api.delta.version_ids import forget_unused
        from projects.client_api.ready_answers import delta_shortcut, features_shortcut
        from projects.client_api.streaming.sdk_streams import sdk_streams, stream
        from projects.seed import seed_projects
        from projects.tokens.start_up import create_init_tokens
        from projects.watcher.watcher import watcher

        post_migrate.connect(seed_projects, sender=self)
        background_tasks.run_on_startup(create_init_tokens)
        background_tasks.run_every(timedelta(minutes=10), clean_usage)
        background_tasks.run_every(timedelta(days=1), forget_unused)
        loop_routes.run_in_loop(watcher.run)
        loop_routes.add_shortcut("/api/client/features", features_shortcut)
        loop_routes.add_shortcut("/api/client/delta", delta_shortcut)
        loop_routes.add_stream("/api/client/streaming", stream)
        loop_routes.run_in_loop(streams.keep_alive)
        loop_routes.run_in_loop(sdk_streams.use_tokens)
