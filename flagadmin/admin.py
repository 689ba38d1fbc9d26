"""Read-only admin pages for audit events, import runs and the installation."""

from django.contrib import admin

from flagadmin.core.audit.models import NEWEST_FIRST, AuditEvent
from flagadmin.core.installation.models import Installation
from groups.admin_site.base import ReadOnlyModelAdmin
from importer.models import ImportRun, InstallationMove, SourceEvent

admin.site.register(
    AuditEvent,
    ReadOnlyModelAdmin,
    list_display=("created_at", "type", "actor_name", "project", "feature", "subject", "environment"),
    list_filter=("type",),
    search_fields=("=project", "=feature", "=subject", "=actor_name", "=request_id"),
    ordering=NEWEST_FIRST,
)
admin.site.register(
    ImportRun,
    ReadOnlyModelAdmin,
    list_display=("created_at", "project", "environment", "caller_name", "source", "state", "file_name"),
    list_filter=("state", "source", "environment"),
    search_fields=("project", "caller_name", "file_name"),
    # The file and the flags' documents may be large. /imports/ shows the results.
    exclude=("body", "before", "after", "preview"),
)
admin.site.register(
    InstallationMove,
    ReadOnlyModelAdmin,
    list_display=("created_at", "step", "address", "caller_name", "finished_at"),
    search_fields=("address", "caller_name"),
    exclude=("report", "proofs"),  # /move/ shows them
)
admin.site.register(
    SourceEvent,
    ReadOnlyModelAdmin,
    list_display=("created_at", "type", "created_by", "project", "feature", "environment", "source"),
    search_fields=("=project", "=feature", "=created_by"),
)
admin.site.register(
    Installation,
    ReadOnlyModelAdmin,
    list_display=("instance_id", "is_in_maintenance", "frontend_origins"),
    search_fields=("instance_id",),
)
