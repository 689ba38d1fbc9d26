"""Applications, instances and usage in the admin site, read-only because SDKs report them."""

from typing import Any

from django.contrib import admin

from groups.access import Caller
from groups.admin_site.base import ReadOnlyModelAdmin
from projects.applications.actions import delete_application
from projects.models import (
    Application,
    ApplicationInstance,
    FlagLastSeen,
    LifecycleStage,
    ProjectRevision,
)


@admin.register(Application)
class ApplicationAdmin(ReadOnlyModelAdmin):
    list_display = ("name", "created_at")
    search_fields = ("name",)

    def remove(self, obj: Application, form: Any, caller: Caller) -> None:
        delete_application(obj.name, caller=caller)


admin.site.register(
    ApplicationInstance,
    ReadOnlyModelAdmin,
    list_display=("instance_id", "application", "environment", "sdk_version", "sdk_type", "seen_at"),
    list_filter=("environment", "sdk_type"),
    list_select_related=("application",),
    search_fields=("instance_id", "application__name", "sdk_version"),
)
admin.site.register(
    FlagLastSeen,
    ReadOnlyModelAdmin,
    list_display=("flag", "environment", "seen_at"),
    list_filter=("environment",),
    list_select_related=("flag",),
    search_fields=("flag__name",),
)
admin.site.register(
    LifecycleStage,
    ReadOnlyModelAdmin,
    list_display=("flag", "stage", "entered_at"),
    list_filter=("stage",),
    list_select_related=("flag",),
    search_fields=("flag__name",),
)
admin.site.register(
    ProjectRevision,
    ReadOnlyModelAdmin,
    list_display=("project_id", "revision"),
    search_fields=("project_id",),
)
