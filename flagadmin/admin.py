"""Read-only admin pages for audit events and import runs."""

from django.contrib import admin
from django.http import HttpRequest

from flagadmin.core.audit.models import AuditEvent
from groups.admin_site.base import ReadOnlyModelAdmin
from importer.models import ImportRun


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyModelAdmin):
    list_display = ("created_at", "type", "actor_name", "project", "feature", "subject", "environment")
    list_filter = ("type",)
    search_fields = ("=project", "=feature", "=subject", "=actor_name", "=request_id")
    ordering = ("-id",)


@admin.register(ImportRun)
class ImportRunAdmin(ReadOnlyModelAdmin):
    """Omits the file and the flags' documents, which may be large. /imports/ shows the results."""

    list_display = ("created_at", "project", "environment", "caller_name", "source", "state", "file_name")
    list_filter = ("state", "source", "environment")
    search_fields = ("project", "caller_name", "file_name")
    exclude = ("body", "before", "after", "preview")

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> tuple[str, ...]:
        return tuple(name for name in super().get_readonly_fields(request, obj) if name not in self.exclude)
