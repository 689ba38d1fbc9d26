"""The projects app: projects, flags, strategies, tokens and usage."""

from datetime import timedelta

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ProjectsConfig(AppConfig):
    name = "projects"
    verbose_name = "Projects"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from flagadmin.core.hook import later, provide
        from flagadmin.core.server import background_tasks, loop_routes
        from projects.seed import seed_projects

        post_migrate.connect(seed_projects, sender=self)
        provide(
            "flagadmin.core.change_checks.comments.check_required",
            "projects.projects.required_comments:check_required_comment",
        )
        background_tasks.run_on_startup(later("projects.tokens.start_up:create_init_tokens"))
        background_tasks.run_every(timedelta(minutes=10), later("projects.applications.cleanup:clean_usage"))
        background_tasks.run_every(timedelta(minutes=10), later("projects.history.definitions_at:fill_past"))
        background_tasks.run_every(timedelta(hours=1), later("projects.history.retention:drop_versions"))
        background_tasks.run_every(
            timedelta(hours=1), later("projects.tokens.pending:announce_expiring_tokens")
        )
        background_tasks.run_throughout(later("projects.segments.source_task:run"))
        background_tasks.run_every(timedelta(hours=1), later("projects.revision:forget_changed_flags"))
        background_tasks.run_every(
            timedelta(minutes=1), later("projects.relays.reports:review_relays"), everywhere=True
        )
        loop_routes.run_in_loop(later("projects.connect.queries:refusals.run"))
