from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "flagadmin.console"
    label = "console"

    def ready(self) -> None:
        from django.contrib import admin

        admin.site.index_title = "Data fixes"
