"""The importer app: importing and exporting flags."""

from django.apps import AppConfig


class ImporterConfig(AppConfig):
    name = "importer"
    verbose_name = "Imports"
