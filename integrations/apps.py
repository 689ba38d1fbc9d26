"""The integrations app, which reports changes to other systems."""

from django.apps import AppConfig


class IntegrationsConfig(AppConfig):
    name = "integrations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from datetime import timedelta

        from django.conf import settings

        from flagadmin.core.http.error_responses import register_error_format
        from flagadmin.core.server import background_tasks
        from importer.moving.writing import created_integration
        from integrations import audit_log
        from integrations.addons import actions as addon_names
        from integrations.addons.actions import create_switched_off
        from integrations.deliveries import sender
        from integrations.deliveries.sender import read_settled_id
        from integrations.mcp.protocol import make_error_document
        from integrations.signals import actions as rule_names
        from integrations.signals.receive import delete_old_signals
        from projects.deletion import kept_names
        from projects.history import queries

        kept_names.register(addon_names)
        kept_names.register(rule_names)
        created_integration.create_switched_off.provide(create_switched_off)
        register_error_format("/mcp", make_error_document)
        queries.read_settled_id.provide(read_settled_id)
        background_tasks.run_throughout(sender.run)
        background_tasks.run_every(timedelta(hours=1), sender.delete_old_deliveries)
        background_tasks.run_every(timedelta(hours=1), audit_log.prune)
        background_tasks.run_every(timedelta(hours=1), delete_old_signals)
        if settings.AUDIT_LOG:
            background_tasks.run_throughout(audit_log.run)
