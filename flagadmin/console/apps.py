"""The console app: pages about everything, such as the start page and the activity log."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "flagadmin.console"
    label = "console"

    def ready(self) -> None:
        from flagadmin.core.server import loop_routes

        loop_routes.run_in_loop(prepare_openapi_document)


async def prepare_openapi_document() -> None:
    # Imported late: commands do not need the document.
    from flagadmin.console.api_docs import operations

    await operations.prepare_openapi_document()
