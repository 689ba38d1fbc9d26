"""The importer app: importing and exporting flags."""

from django.apps import AppConfig


class ImporterConfig(AppConfig):
    name = "importer"
    verbose_name = "Imports"

    def ready(self) -> None:
        from importer.comparable import IMPORT
        from importer.moving.proving.remote_state import REMOTE
        from playground.comparison import kinds

        kinds.register(IMPORT)
        kinds.register(REMOTE)
