from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "flagadmin.console"
    label = "console"

    def ready(self) -> None:
        from django.contrib import admin

        admin.site.index_title = "Data fixes"
        # The lists need the room; the index and the breadcrumbs lead everywhere.
        admin.site.enable_nav_sidebar = False
