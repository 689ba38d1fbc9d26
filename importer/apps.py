"""The importer app: importing and exporting flags."""

from django.apps import AppConfig


class ImporterConfig(AppConfig):
    name = "importer"
    verbose_name = "Imports"

    def ready(self) -> None:
        from flagadmin.core.hook import add

        add("playground.comparison.states", "importer.effects:IMPORT")
        add("playground.comparison.states", "importer.moving.proving.answers:REMOTE")
