"""The importer app: importing and exporting flags."""

from django.apps import AppConfig


class ImporterConfig(AppConfig):
    name = "importer"
    verbose_name = "Imports"

    def ready(self) -> None:
        from flagadmin.core.hook import add

        add("playground.comparison.kinds", "importer.effects:IMPORT")
        add("playground.comparison.kinds", "importer.moving.proving.answers:REMOTE")
