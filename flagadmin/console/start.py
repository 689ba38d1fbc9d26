"""The start page, and the switch between light and dark."""

from datetime import timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from flagadmin.audit.events import EventType
from flagadmin.console.activity import told
from flagadmin.console.chrome import THEMES
from flagadmin.pages import curl_for
from groups.pages.base import ConsolePage
from projects.access import readable_projects
from projects.events import readable_events
from projects.models import Project

SHOWN_PROJECTS = 30


def counted_projects(projects: QuerySet[Project]) -> QuerySet[Any]:
    """Projects that are not archived, each with its numbers of active and archived flags."""
    return projects.filter(archived_at=None).annotate(
        active_flags=Count("flags", filter=Q(flags__archived_at=None)),
        archived_flags=Count("flags", filter=Q(flags__archived_at__isnull=False)),
    )


class StartPage(ConsolePage):
    template_name = "console/start.html"
    title = "Start"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        projects = counted_projects(readable_projects(self.caller)).order_by("-active_flags", "id")
        events = readable_events(self.caller)
        imports = events.filter(type__in=[EventType.FEATURES_IMPORTED.value, EventType.IMPORT_UNDONE.value])
        return super().get_context_data(
            projects=projects[:SHOWN_PROJECTS],
            more_projects=max(0, projects.count() - SHOWN_PROJECTS),
            imports=told(imports.order_by("-id")[:5]),
            activity=told(events.order_by("-id")[:10]),
            start_here=not self.request.session.get("evaluated"),
            **kwargs,
        )

    def curl(self) -> str:
        return curl_for(self.request, "GET", "/api/admin/projects")


@csrf_exempt  # it keeps a colour; the form stands on pages that have no session yet
@require_POST
def keep_theme(request: HttpRequest) -> HttpResponse:
    """Keeps light or dark in a cookie and goes back to where one was."""
    back = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        back = "/"
    response = HttpResponseRedirect(back)
    theme = request.POST.get("theme")
    if theme in THEMES:
        response.set_cookie("theme", theme, max_age=timedelta(days=365), samesite="Lax")
    return response


urlpatterns = [
    path("", StartPage.as_view(), name="start"),
    path("theme/", keep_theme, name="theme"),
]
