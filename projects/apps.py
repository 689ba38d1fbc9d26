"""The projects app: projects, flags, strategies, tokens and usage."""

from datetime import timedelta

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ProjectsConfig(AppConfig):
    name = "projects"
    verbose_name = "Projects"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from flagadmin.core.change_checks.comments import check_required
        from flagadmin.core.server import background_tasks, loop_routes
        from projects.applications.cleanup import clean_usage
        from projects.connect.refusals import refusals
        from projects.history.definitions_at import fill_past
        from projects.projects.required_comments import check_required_comment
        from projects.relays.reports import review_relays
        from projects.revision import forget_changed_flags
        from projects.seed import seed_projects
        from projects.tokens.expiry import announce_expiring_tokens

        post_migrate.connect(seed_projects, sender=self)
        check_required.provide(check_required_comment)
        background_tasks.run_on_startup(create_init_tokens)
        background_tasks.run_every(timedelta(minutes=10), clean_usage)
        background_tasks.run_every(timedelta(minutes=10), fill_past)
        background_tasks.run_every(timedelta(hours=1), announce_expiring_tokens)
        background_tasks.run_every(timedelta(hours=1), forget_changed_flags)
        background_tasks.run_every(timedelta(minutes=1), review_relays, everywhere=True)
        loop_routes.run_in_loop(refusals.run)


def create_init_tokens() -> None:
    # Imported late: only `serve` needs pydantic before it has workers.
    from projects.tokens import start_up

    start_up.create_init_tokens()
