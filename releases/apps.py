"""The releases app: changes that are reviewed before they are made."""

from django.apps import AppConfig


class ReleasesConfig(AppConfig):
    name = "releases"

    def ready(self) -> None:
        from flagadmin.core import change_checks
        from releases.gate import guard

        change_checks.register(guard)
