"""The app of the installation's settings."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class InstallationConfig(AppConfig):
    name = "flagadmin.core.installation"
    label = "installation"
    verbose_name = "Installation"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from flagadmin.core.installation.models import create_row

        post_migrate.connect(create_row, sender=self)
