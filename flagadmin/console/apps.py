"""The console app: pages about everything, such as the start page and the activity log."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "flagadmin.console"
    label = "console"

    def ready(self) -> None:
        from django.contrib import admin

        from flagadmin.console.api_docs.document import prepare_openapi_document
        from flagadmin.core.server import loop_routes

        loop_routes.run_in_loop(prepare_openapi_document)
        admin.site.index_title = "Data fixes"
        # The lists need the width; the index page and the breadcrumbs are enough for navigation.
        admin.site.enable_nav_sidebar = False
