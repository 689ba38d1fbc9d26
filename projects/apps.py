from datetime import timedelta

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ProjectsConfig(AppConfig):
    name = "projects"
    verbose_name = "Projects"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from flagadmin import runtime
        from projects.actions.init_tokens import create_init_tokens
        from projects.actions.usage_cleanup import clean_usage
        from projects.seed import seed_projects

        post_migrate.connect(seed_projects, sender=self)
        runtime.at_start(create_init_tokens)
        runtime.every(timedelta(minutes=10), clean_usage)
