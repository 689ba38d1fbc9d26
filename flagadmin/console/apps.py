from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "flagadmin.console"
    label = "console"
