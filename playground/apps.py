"""The playground app: evaluating flags and explaining the results."""

from django.apps import AppConfig


class PlaygroundConfig(AppConfig):
    name = "playground"
