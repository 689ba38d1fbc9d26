"""The importer app: importing and exporting flags."""

from django.apps import AppConfig


class ImporterConfig(AppConfig):
    name = "importer"
    verbose_name = "Imports"

    def ready(self) -> None:
        from playground.comparison import kinds

        kinds.register("importer.effects.IMPORT")
        kinds.register("importer.moving.proving.answers.REMOTE")
