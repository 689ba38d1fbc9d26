"""The importer app: importing and exporting flags."""

from django.apps import AppConfig


class ImporterConfig(AppConfig):
    name = "importer"
    verbose_name = "Imports"

    def ready(self) -> None:
        from importer.comparable import import_choices, read_import
        from playground.comparison import planned

        planned.register(planned.Source(import_choices, read_import))
