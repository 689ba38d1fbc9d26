"""The integrations app, which reports changes to other systems."""

from datetime import timedelta

from django.apps import AppConfig
from django.conf import settings


class IntegrationsConfig(AppConfig):
    name = "integrations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from flagadmin.core.hook import later, provide
        from flagadmin.core.http.error_formats import register_error_format
        from flagadmin.core.server import background_tasks
        from projects.deletion import kept_names

        kept_names.register("integrations.addons.actions")
        kept_names.register("integrations.signals.actions")
        provide(
            "importer.moving.writing.settings.create_switched_off",
            "integrations.addons.actions:create_switched_off",
        )
        register_error_format("/mcp", later("integrations.mcp.api:make_error_document"))
        provide("projects.history.queries.read_settled_id", "integrations.deliveries.sender:read_settled_id")
        background_tasks.run_throughout(later("integrations.deliveries.sender:run"))
        for task in (
            "integrations.deliveries.sender:delete_old_deliveries",
            "integrations.audit_log:prune",
            "integrations.signals.receive:delete_old_signals",
        ):
            background_tasks.run_every(timedelta(hours=1), later(task))
        if settings.AUDIT_LOG:
            background_tasks.run_throughout(later("integrations.audit_log:run"))
