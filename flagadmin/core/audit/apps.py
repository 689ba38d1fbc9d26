"""The audit app: the table of audit events."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "flagadmin.core.audit"
    label = "audit"
    verbose_name = "Activity"
    default_auto_field = "django.db.models.BigAutoField"
