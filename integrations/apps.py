"""The integrations app: what happens here, told to other systems."""

from django.apps import AppConfig


class IntegrationsConfig(AppConfig):
    name = "integrations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from datetime import timedelta

        from flagadmin.core.server import background_tasks
        from integrations import sender

        background_tasks.run_throughout(sender.run)
        background_tasks.run_every(timedelta(hours=1), sender.delete_old_deliveries)
