"""The integrations app: what happens here, told to other systems."""

from django.apps import AppConfig


class IntegrationsConfig(AppConfig):
    name = "integrations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from datetime import timedelta

        from django.conf import settings

        from flagadmin.core.http.error_responses import register_error_format
        from flagadmin.core.server import background_tasks
        from integrations.audit_log import retention, write
        from integrations.deliveries import sender
        from integrations.deliveries.outbox import read_settled_id
        from integrations.mcp.protocol import make_error_document
        from integrations.signals.receive import delete_old_signals
        from projects.history import settled

        register_error_format("/mcp", make_error_document)
        settled.read_settled_id.provide(read_settled_id)
        background_tasks.run_throughout(sender.run)
        background_tasks.run_every(timedelta(hours=1), sender.delete_old_deliveries)
        background_tasks.run_every(timedelta(hours=1), retention.prune)
        background_tasks.run_every(timedelta(hours=1), delete_old_signals)
        if settings.AUDIT_LOG:
            background_tasks.run_throughout(write.run)
