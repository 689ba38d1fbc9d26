"""The app of the project package itself, with its management commands and static files."""

from django.apps import AppConfig


class FlagadminConfig(AppConfig):
    """The project itself as an app: its management commands and static files."""

    name = "flagadmin"
    verbose_name = "flagadmin"
